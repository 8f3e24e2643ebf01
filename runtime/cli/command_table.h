// The table of commands, and the dispatch of a command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cli/command.h"

namespace patchbay::cli {

struct CommandEntry {
  const char* name;     ///< one or two words: "status", "key new"
  const char* summary;  ///< one line of the overview
  std::unique_ptr<Command> (*make)();
  std::string note = {};  ///< more, for its own --help
};

/// All commands, in the order the overview shows them.
const std::vector<CommandEntry>& CommandTable();

/// `patchbay --help`: at most 40 lines of 100 columns; commands of one first word share one.
std::string OverviewText();
/// `patchbay NAME --help`.
std::string CommandHelp(const CommandEntry& entry);

/// Everything after the program's name; returns the exit code.
int RunCommandLine(std::vector<std::string> words, const client::Environment& environment);

}  // namespace patchbay::cli

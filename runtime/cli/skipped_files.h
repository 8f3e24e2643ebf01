// Files in folders that a command was given and that it does not read, as commands show them.
#pragma once

#include <string>

#include "runtime/cli/terminal.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// "3 .dcm, 1 other" of {"dcm": 3, "other": 1}; "" when there is none. Members that are no number
/// of files count as none.
std::string SkippedText(const Json& skipped_files);

/// Prints "skipped: 3 .dcm, 1 other", or nothing. Every command that lists folders calls it
/// once.
void PrintSkipped(Terminal& terminal, const Json& skipped_files);

/// The member "skipped_files" of a task's result; an empty object without one.
Json SkippedOf(const Json& result);

}  // namespace patchbay::cli

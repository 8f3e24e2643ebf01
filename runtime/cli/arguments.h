// Arguments of a command, declared as values; parsing and help both read the declaration.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/jobs/option.h"

namespace patchbay::cli {

/// An option of a job or of a command alone; targets point into the command.
using Argument = Option;

/// A command's own arguments, then the options of its job.
template <typename Struct>
std::vector<Argument> WithOptions(std::vector<Argument> own, Struct& values) {
  for (Option& option : ForHelp(values.Options())) own.push_back(std::move(option));
  return own;
}

/// Fills the targets from `words` (without program and command name).
/// Behind a word "--" every word is a positional.
/// InvalidArgument for an unknown flag (naming the nearest known one), a missing or malformed
/// value; what was filled until then stays.
Status ParseArguments(const std::vector<Argument>& arguments, std::vector<std::string> words);

}  // namespace patchbay::cli

// What a command takes on its command line, declared as values; parsing and help both read the
// declaration.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::cli {

/// Where a parsed value goes. Points into the command, which outlives its declaration. A bool is a
/// switch; a vector takes every remaining positional, or every repetition of a flag.
using ArgumentTarget =
    std::variant<bool*, std::string*, std::int64_t*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::vector<std::string>*>;

/// One flag ("--out") or, when the name has no dashes, one positional ("SOURCE"). The default of a
/// flag is what its target holds.
struct Argument {
  std::string name;
  std::string value;  ///< stands for the value in help ("DIR", "N"); "" for switches, positionals
  std::string help;   ///< one line
  ArgumentTarget target;
  bool required = false;
  std::vector<std::string> choices = {};  ///< for text: the only values allowed, unless empty
  double min = std::numeric_limits<double>::lowest();  ///< for numbers
  double max = std::numeric_limits<double>::max();

  bool IsFlag() const { return !name.empty() && name[0] == '-'; }
  bool IsSwitch() const { return std::holds_alternative<bool*>(target); }
};

/// Fills the targets from `words` (without program and command name).
/// Behind a word "--" every word is a positional.
/// InvalidArgument for an unknown flag (naming the nearest known one), a missing or malformed
/// value; what was filled until then stays.
Status ParseArguments(const std::vector<Argument>& arguments, std::vector<std::string> words);

}  // namespace patchbay::cli

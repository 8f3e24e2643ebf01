// Options, declared once: a flag on the command line, a key of a task's payload, a row of the
// reference page (configs/jobs.md). Options of a job stand in a table next to the struct that they
// fill; command and worker bind the same table to their own struct.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay {

/// Three numbers along z, y, x; "1,0.5,0.5" as text, where one number holds for all axes.
using AxisNumbers = std::array<double, 3>;

/// Sides of a picture in pixels: "6000x4500" or "24x128x128" as text, a list in JSON.
struct Sides {
  std::vector<std::int64_t*> of;  ///< in the order of the text
};

/// Where a value goes; it outlives the declaration. A bool is a switch; a vector takes every
/// remaining positional, or every repetition of a flag.
using OptionTarget = std::variant<bool*, std::string*, std::int64_t*, double*,
                                  std::optional<std::int64_t>*, std::optional<double>*,
                                  std::vector<std::string>*, std::optional<AxisNumbers>*, Sides>;

/// One flag ("--out") or, when the name has no dashes, one positional ("SOURCE"). The default of a
/// flag is the value its target holds.
struct Option {
  std::string name = {};
  /// Stands for the value in help ("DIR", "N"); "" for switches, positionals.
  std::string value = {};
  std::string help = {};  ///< one line; of a job's option without range and default
  OptionTarget target = {};
  bool required = false;
  std::vector<std::string> choices = {};  ///< for text: the only values allowed, unless empty
  double min = std::numeric_limits<double>::lowest();  ///< for numbers
  double max = std::numeric_limits<double>::max();
  std::vector<std::int64_t> numbers = {};  ///< for whole numbers: the only ones, unless empty
  std::string unit = {};                   ///< "px", "mm", ...
  std::string otherwise = {};  ///< text of the default if the target has none: "the slide's"
  std::string hint = {};       ///< follows a refusal: the value that was probably meant
  bool always = false;         ///< written at its default too (WriteOptions)

  bool IsFlag() const { return !name.empty() && name[0] == '-'; }
  bool IsSwitch() const { return std::holds_alternative<bool*>(target); }
  /// The key in a payload: "codec_level" for "--codec-level".
  std::string Key() const;
};

/// Whether the bounds of the option allow a number, or its choices a text.
bool Allows(const Option& option, double number);
bool Allows(const Option& option, const std::string& text);

/// "expected a whole number in 64..4096, not '5'", and the hint.
std::string RefusalOf(const Option& option, const std::string& given);

/// Sets the target of each option that `payload` has; null leaves an optional one unset.
/// InvalidArgument for an unknown key, another type and a value that is not allowed. `others`: keys
/// of the payload that are no options.
Status ReadOptions(const std::vector<Option>& options, const Json& payload, std::string_view what,
                   std::initializer_list<std::string_view> others = {});
/// The same for the value of one option.
Status ReadOption(const Option& option, const Json& value, std::string_view what);

/// A payload for ReadOptions. Values at their default are left out unless `always` is set, so that
/// a new option does not change the names of finished work.
Json WriteOptions(const std::vector<Option>& options, const std::vector<Option>& defaults);

/// The payload of a struct with `std::vector<Option> Options()`.
template <typename Struct>
Json PayloadOf(Struct values) {
  Struct defaults;
  return WriteOptions(values.Options(), defaults.Options());
}

/// Reads the struct from a payload of PayloadOf; its `Check`, if any, tests values against each
/// other.
template <typename Struct>
StatusOr<Struct> ReadPayload(const Json& payload, std::string_view what,
                             std::initializer_list<std::string_view> others = {}) {
  Struct values;
  PB_RETURN_IF_ERROR(ReadOptions(values.Options(), payload, what, others));
  if constexpr (requires { values.Check(); }) {
    PB_RETURN_IF_ERROR(Annotate(values.Check(), what));
  }
  return values;
}

/// The options with range and default in their help, as a command lists them.
std::vector<Option> ForHelp(std::vector<Option> options);

/// A Markdown table with a row for every option.
std::string DocumentOptions(const std::vector<Option>& options);

}  // namespace patchbay

#include "runtime/cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <type_traits>

#include <CLI/CLI.hpp>

#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

Status Unknown(const std::string& word, const std::vector<Argument>& arguments) {
  if (word.rfind('-', 0) != 0) {
    return absl::InvalidArgumentError(StrCat("unexpected argument '", word, "'"));
  }
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const Argument& argument : arguments) {
    if (argument.IsFlag()) known.push_back(argument.name);
  }
  const std::string nearest = Nearest(flag, known);
  return absl::InvalidArgumentError(
      StrCat("unknown flag '", flag, "'",
             nearest.empty() ? std::string() : StrCat(": did you mean '", nearest, "'?")));
}

/// "in 64..4096", "from 1 on" or nothing: what the bounds of an argument leave.
std::string BoundsText(const Argument& argument) {
  const auto text = [](double bound) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.15g", bound);
    return std::string(digits);
  };
  const bool has_min = argument.min != std::numeric_limits<double>::lowest();
  const bool has_max = argument.max != std::numeric_limits<double>::max();
  if (has_min && has_max) return StrCat(" in ", text(argument.min), "..", text(argument.max));
  if (has_min) return StrCat(" from ", text(argument.min), " on");
  return has_max ? StrCat(" up to ", text(argument.max)) : std::string();
}

/// Refuses what is no `Number` within the argument's bounds; CLI11 asks before it converts.
template <typename Number>
CLI::Validator Bounded(const Argument& argument) {
  const auto refusal = [argument](const std::string& text) -> std::string {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto number = static_cast<double>(value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(number) &&
        number >= argument.min && number <= argument.max) {
      return "";
    }
    return StrCat("expected a ", std::is_integral_v<Number> ? "whole number" : "number",
                  BoundsText(argument), ", not '", text, "'");
  };
  return CLI::Validator(refusal, "");
}

/// Adds one argument to CLI11's parser; each overload is one kind of target.
struct Adder {
  CLI::App& app;
  const Argument& argument;

  CLI::Option* operator()(bool* target) const { return app.add_flag(argument.name, *target); }
  CLI::Option* operator()(std::string* target) const {
    return app.add_option(argument.name, *target);
  }
  CLI::Option* operator()(std::int64_t* target) const {
    return app.add_option(argument.name, *target)->check(Bounded<std::int64_t>(argument));
  }
  CLI::Option* operator()(std::optional<std::int64_t>* target) const {
    return app.add_option(argument.name, *target)->check(Bounded<std::int64_t>(argument));
  }
  CLI::Option* operator()(std::optional<double>* target) const {
    return app.add_option(argument.name, *target)->check(Bounded<double>(argument));
  }
  CLI::Option* operator()(std::vector<std::string>* target) const {
    CLI::Option* option = app.add_option(argument.name, *target);
    return argument.IsFlag() ? option->take_all()->allow_extra_args(false) : option;
  }
};

/// What CLI11 found no place for, less the "--" itself, which it counts among that.
std::vector<std::string> Surplus(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  const auto mark = std::find(words.begin(), words.end(), "--");
  if (mark != words.end()) words.erase(mark);
  return words;
}

/// Refuses what is none of the argument's choices.
CLI::Validator OneOf(const Argument& argument) {
  const auto refusal = [choices = argument.choices](const std::string& text) -> std::string {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return "";
    return StrCat("expected one of ", StrJoin(choices, ", "), ", not '", text, "'");
  };
  return CLI::Validator(refusal, "");
}

void Add(CLI::App& app, const Argument& argument) {
  CLI::Option* option = std::visit(Adder{app, argument}, argument.target);
  if (argument.required) option->required();
  if (!argument.choices.empty()) option->check(OneOf(argument));
}

}  // namespace

Status ParseArguments(const std::vector<Argument>& arguments, std::vector<std::string> words) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::reverse(words.begin(), words.end());  // the order CLI11 takes them in
  try {
    for (const Argument& argument : arguments) Add(app, argument);
    app.parse(words);
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> surplus = Surplus(app);
    if (!surplus.empty()) return Unknown(surplus.front(), arguments);
    return absl::InvalidArgumentError(error.what());
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  const std::vector<std::string> surplus = Surplus(app);
  if (!surplus.empty()) return Unknown(surplus.front(), arguments);
  return absl::OkStatus();
}

}  // namespace patchbay::cli

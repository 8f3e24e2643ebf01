#include "runtime/cli/arguments.h"

#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>

#include "runtime/core/strings.h"

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

/// Refuses text that is no `Number` or one that the argument does not allow; CLI11 asks before it
/// converts.
template <typename Number>
CLI::Validator Bounded(const Argument& argument) {
  const auto refusal = [argument](const std::string& text) -> std::string {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    const bool is_allowed = is_number && Allows(argument, static_cast<double>(value));
    return is_allowed ? "" : RefusalOf(argument, text);
  };
  return CLI::Validator(refusal, "");
}

/// "1,0.5,0.5" as a list; one number holds for all axes.
Json AxisList(const std::string& text) {
  const auto parsed = ParseJson(StrCat("[", text, "]"), "numbers of axes");
  if (!parsed.ok()) return text;
  if (parsed->size() != 1) return *parsed;
  return Json::array({(*parsed)[0], (*parsed)[0], (*parsed)[0]});
}

CLI::Validator AxesAllowed(const Argument& argument) {
  const auto refusal = [argument](const std::string& text) -> std::string {
    std::optional<AxisNumbers> numbers;
    Argument trial = argument;
    trial.target = &numbers;
    return ReadOption(trial, AxisList(text), "").ok() ? "" : RefusalOf(argument, text);
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
  CLI::Option* operator()(std::optional<AxisNumbers>* target) const {
    const auto take = [target](const std::string& text) {
      *target = AxisList(text).get<AxisNumbers>();
    };
    return app.add_option_function<std::string>(argument.name, take)->check(AxesAllowed(argument));
  }
  CLI::Option* operator()(std::vector<std::string>* target) const {
    CLI::Option* option = app.add_option(argument.name, *target);
    return argument.IsFlag() ? option->take_all()->allow_extra_args(false) : option;
  }
};

/// Words that CLI11 found no place for, less the "--" itself, which it counts among them.
std::vector<std::string> Surplus(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  const auto mark = std::find(words.begin(), words.end(), "--");
  if (mark != words.end()) words.erase(mark);
  return words;
}

/// Refuses text that is none of the argument's choices.
CLI::Validator OneOf(const Argument& argument) {
  const auto refusal = [argument](const std::string& text) -> std::string {
    return Allows(argument, text) ? "" : RefusalOf(argument, text);
  };
  return CLI::Validator(refusal, "");
}

CLI::Option* Add(CLI::App& app, const Argument& argument) {
  CLI::Option* option = std::visit(Adder{app, argument}, argument.target);
  if (argument.required) option->required();
  if (!argument.choices.empty()) option->check(OneOf(argument));
  return option;
}

/// The kind of value that a flag takes: "a folder", "a number", "a value (NAME)".
std::string Wanted(const Argument& argument) {
  if (!argument.choices.empty()) return StrCat("one of ", StrJoin(argument.choices, ", "));
  if (std::holds_alternative<std::optional<AxisNumbers>*>(argument.target)) return argument.value;
  if (!std::holds_alternative<std::string*>(argument.target) &&
      !std::holds_alternative<std::vector<std::string>*>(argument.target)) {
    return "a number";
  }
  if (argument.value == "DIR") return "a folder";
  const bool is_file = argument.value == "FILE" || argument.value.find('.') != std::string::npos;
  return is_file ? "a file" : StrCat("a value (", argument.value, ")");
}

/// A flag without its value, or given more often than it is taken; CLI11's text begins with it.
Status WrongCount(const std::vector<Argument>& arguments, const std::string& text) {
  for (const Argument& argument : arguments) {
    if (!text.starts_with(argument.name + ":")) continue;
    const bool is_repeated = text.find("received") != std::string::npos;
    return absl::InvalidArgumentError(
        is_repeated ? StrCat(argument.name, " is given ",
                             text.ends_with("received 2") ? "twice" : "more than twice")
                    : StrCat(argument.name, " needs ", Wanted(argument)));
  }
  return absl::InvalidArgumentError(text);
}

/// Refuses text that is empty: as a name or path it would count as not given.
Status CheckNotEmpty(const Argument& argument, const CLI::Option& option) {
  const std::vector<std::string>& given = option.results();
  if (argument.IsSwitch() || std::find(given.begin(), given.end(), "") == given.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat(argument.name, " is empty"));
}

/// "--out=" and "--out --json": CLI11 would take whatever word is next for the value.
Status CheckNextWords(const std::vector<Argument>& arguments,
                      const std::vector<std::string>& words) {
  const auto flag = [&](const std::string& word) {
    return std::find_if(arguments.begin(), arguments.end(), [&](const Argument& argument) {
      return argument.IsFlag() && argument.name == word;
    });
  };
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i].ends_with('=') &&
        flag(words[i].substr(0, words[i].size() - 1)) != arguments.end()) {
      return absl::InvalidArgumentError(
          StrCat(words[i].substr(0, words[i].size() - 1), " is empty"));
    }
    const auto found = flag(words[i]);
    if (found == arguments.end() || found->IsSwitch() || i + 1 == words.size()) continue;
    if (flag(words[i + 1]) != arguments.end()) {
      return absl::InvalidArgumentError(StrCat(found->name, " needs ", Wanted(*found)));
    }
    ++i;  // the value
  }
  return absl::OkStatus();
}

}  // namespace

Status ParseArguments(const std::vector<Argument>& arguments, std::vector<std::string> words) {
  PB_RETURN_IF_ERROR(CheckNextWords(arguments, words));
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::reverse(words.begin(), words.end());  // the order CLI11 takes them in
  std::vector<const CLI::Option*> options;
  try {
    for (const Argument& argument : arguments) options.push_back(Add(app, argument));
    app.parse(words);
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> surplus = Surplus(app);
    if (!surplus.empty()) return Unknown(surplus.front(), arguments);
    return absl::InvalidArgumentError(error.what());
  } catch (const CLI::ArgumentMismatch& error) {
    return WrongCount(arguments, error.what());
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  const std::vector<std::string> surplus = Surplus(app);
  if (!surplus.empty()) return Unknown(surplus.front(), arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    PB_RETURN_IF_ERROR(CheckNotEmpty(arguments[i], *options[i]));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::cli

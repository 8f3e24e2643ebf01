#include "runtime/cli/arguments.h"

#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>

#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

Status Unknown(const std::string& word, const std::vector<Argument>& arguments) {
  if (word.rfind('-', 0) != 0) return InvalidArgument("unexpected argument '", word, "'");
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const Argument& argument : arguments) {
    if (argument.IsFlag()) known.push_back(argument.name);
  }
  const std::string nearest = Nearest(flag, known);
  return InvalidArgument(
      "unknown flag '", flag, "'",
      nearest.empty() ? std::string() : StrCat(": did you mean '", nearest, "'?"));
}

/// A number as a payload has it; text that is none stays text.
Json NumberOf(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && at == end) {
    return whole;
  }
  double number = 0;
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? Json(number) : Json(std::string(text));
}

/// "24x128x128" or "1,0.5,0.5" as a list.
Json ListOf(std::string_view text, char separator) {
  Json list = Json::array();
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    list.push_back(NumberOf(text.substr(at, end - at)));
    at = end + 1;
  }
  return list;
}

bool IsAxes(const Argument& argument) {
  return std::holds_alternative<std::optional<AxisNumbers>*>(argument.target);
}
bool IsSides(const Argument& argument) { return std::holds_alternative<Sides>(argument.target); }
bool IsText(const Argument& argument) {
  return std::holds_alternative<std::string*>(argument.target);
}

/// The words of one value, as a payload has them.
Json ValueOf(const Argument& argument, const std::string& text) {
  if (IsText(argument)) return text;
  if (IsSides(argument)) return ListOf(text, 'x');
  if (!IsAxes(argument)) return NumberOf(text);
  const Json list = ListOf(text, ',');
  return list.size() == 1 ? Json::array({list[0], list[0], list[0]}) : list;
}

/// Adds one argument to CLI11's parser.
CLI::Option* Add(CLI::App& app, const Argument& argument) {
  if (auto* const flag = std::get_if<bool*>(&argument.target)) {
    return app.add_flag(argument.name, **flag);
  }
  if (auto* const list = std::get_if<std::vector<std::string>*>(&argument.target)) {
    CLI::Option* option = app.add_option(argument.name, **list)->required(argument.required);
    return argument.IsFlag() ? option->take_all()->allow_extra_args(false) : option;
  }
  const auto take = [argument](const std::string& text) {
    if (ReadOption(argument, ValueOf(argument, text), "").ok()) return;
    throw CLI::ValidationError(argument.name, RefusalOf(argument, text));
  };
  return app.add_option_function<std::string>(argument.name, take)->required(argument.required);
}

/// Words that CLI11 found no place for, less the "--" itself, which it counts among them.
std::vector<std::string> Surplus(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  const auto mark = std::find(words.begin(), words.end(), "--");
  if (mark != words.end()) words.erase(mark);
  return words;
}

/// The kind of value that a flag takes: "a folder", "a number", "a value (NAME)".
std::string Wanted(const Argument& argument) {
  if (!argument.choices.empty()) return StrCat("one of ", StrJoin(argument.choices, ", "));
  if (IsAxes(argument) || IsSides(argument)) return argument.value;
  if (!IsText(argument) && !std::holds_alternative<std::vector<std::string>*>(argument.target)) {
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
    return InvalidArgument(is_repeated
                               ? StrCat(argument.name, " is given ",
                                        text.ends_with("received 2") ? "twice" : "more than twice")
                               : StrCat(argument.name, " needs ", Wanted(argument)));
  }
  return InvalidArgument(text);
}

/// Refuses text that is empty: as a name or path it would count as not given.
Status CheckNotEmpty(const Argument& argument, const CLI::Option& option) {
  const std::vector<std::string>& given = option.results();
  if (argument.IsSwitch() || std::find(given.begin(), given.end(), "") == given.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument(argument.name, " is empty");
}

/// Refuses "--out=" and "--out --json": CLI11 would take the next word as the value.
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
      return InvalidArgument(words[i].substr(0, words[i].size() - 1), " is empty");
    }
    const auto found = flag(words[i]);
    if (found == arguments.end() || found->IsSwitch() || i + 1 == words.size()) continue;
    if (flag(words[i + 1]) != arguments.end()) {
      return InvalidArgument(found->name, " needs ", Wanted(*found));
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
    return InvalidArgument(error.what());
  } catch (const CLI::ArgumentMismatch& error) {
    return WrongCount(arguments, error.what());
  } catch (const CLI::Error& error) {
    return InvalidArgument(error.what());
  }
  const std::vector<std::string> surplus = Surplus(app);
  if (!surplus.empty()) return Unknown(surplus.front(), arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    PB_RETURN_IF_ERROR(CheckNotEmpty(arguments[i], *options[i]));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::cli

#include "runtime/cli/arguments.h"

#include <algorithm>

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

/// Adds one argument to CLI11's parser; each overload is one kind of target.
struct Adder {
  CLI::App& app;
  const Argument& argument;

  CLI::Option* operator()(bool* target) const { return app.add_flag(argument.name, *target); }
  CLI::Option* operator()(std::string* target) const {
    return app.add_option(argument.name, *target);
  }
  CLI::Option* operator()(std::int64_t* target) const {
    return app.add_option(argument.name, *target)->check(CLI::Range(argument.min, argument.max));
  }
  CLI::Option* operator()(std::optional<std::int64_t>* target) const {
    return app.add_option(argument.name, *target)->check(CLI::Range(argument.min, argument.max));
  }
  CLI::Option* operator()(std::optional<double>* target) const {
    return app.add_option(argument.name, *target)->check(CLI::Range(argument.min, argument.max));
  }
  CLI::Option* operator()(std::vector<std::string>* target) const {
    CLI::Option* option = app.add_option(argument.name, *target);
    return argument.IsFlag() ? option->take_all()->allow_extra_args(false) : option;
  }
};

void Add(CLI::App& app, const Argument& argument) {
  CLI::Option* option = std::visit(Adder{app, argument}, argument.target);
  if (argument.required) option->required();
  if (!argument.choices.empty()) option->check(CLI::IsMember(argument.choices));
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
    if (!app.remaining().empty()) return Unknown(app.remaining().front(), arguments);
    return absl::InvalidArgumentError(error.what());
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  const std::vector<std::string> extra = app.remaining();
  if (!extra.empty()) return Unknown(extra.front(), arguments);
  return absl::OkStatus();
}

}  // namespace patchbay::cli

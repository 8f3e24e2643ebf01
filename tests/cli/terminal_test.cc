// Text for people: tables, durations, the command table itself.
#include "runtime/cli/terminal.h"

#include <set>

#include <gtest/gtest.h>

#include "runtime/cli/arguments.h"
#include "runtime/cli/command_table.h"

namespace patchbay::cli {
namespace {

TEST(FormatTable, AlignsColumnsAndLeavesNoTrailingSpace) {
  const auto lines = FormatTable({{"name", "bytes", "x"}, {"a", "1", ""}}, {false, true});
  EXPECT_EQ(lines, (std::vector<std::string>{"name  bytes  x", "a         1"}));
}

TEST(FormatTable, ANameBeginsNoRowAndNoColumnOfItsOwn) {
  const auto lines = FormatTable({{"name", "state"}, {"a\nb\tc", "bad"}, {"d", "ok"}});
  EXPECT_EQ(lines, (std::vector<std::string>{"name         state", "a\\x0ab\\x09c  bad",
                                             "d            ok"}));
}

TEST(FirstColumns, CutsBetweenCharacters) {
  EXPECT_EQ(FirstColumns("abc", 5), "abc");
  EXPECT_EQ(FirstColumns("abc", 3), "abc");
  EXPECT_EQ(FirstColumns("abc", 2), "ab");
  EXPECT_EQ(FirstColumns("\xc3\xa4\xc3\xb6x", 1), "\xc3\xa4");
  EXPECT_EQ(FirstColumns("\xc3\xa4\xc3\xb6x", 2), "\xc3\xa4\xc3\xb6");
  EXPECT_EQ(FirstColumns("x", 0), "");
}

TEST(HumanSeconds, ReadsAsPeopleSayIt) {
  EXPECT_EQ(HumanSeconds(0.26), "0.3 s");
  EXPECT_EQ(HumanSeconds(42.4), "42 s");
  EXPECT_EQ(HumanSeconds(245), "4:05");
  EXPECT_EQ(HumanSeconds(3599), "59:59");
  EXPECT_EQ(HumanSeconds(3600), "1:00:00");
  EXPECT_EQ(HumanSeconds(3723), "1:02:03");
  EXPECT_EQ(HumanSeconds(-1), "?");
}

TEST(CommandTable, NamesAreUniqueAndEveryArgumentIsExplained) {
  std::set<std::string> names;
  for (const CommandEntry& entry : CommandTable()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    for (const Argument& argument : entry.make()->Arguments()) {
      EXPECT_FALSE(argument.help.empty()) << entry.name << " " << argument.name;
    }
  }
}

TEST(ParseArguments, FillsEveryKindOfTarget) {
  bool flag = false;
  std::string text;
  std::int64_t number = 0;
  std::optional<std::int64_t> maybe, absent;
  std::optional<double> real;
  std::vector<std::string> list, rest;
  const std::vector<Argument> arguments = {
      {"--flag", "", "h", &flag},      {"--text", "T", "h", &text},
      {"--number", "N", "h", &number}, {"--maybe", "N", "h", &maybe},
      {"--absent", "N", "h", &absent}, {"--real", "R", "h", &real},
      {"--list", "L", "h", &list},     {"REST", "", "h", &rest, true}};
  ASSERT_TRUE(ParseArguments(arguments, {"--flag", "a", "--text=b", "--number", "-3", "--maybe",
                                         "4", "--real", "0.5", "--list", "x", "--list", "y", "c"})
                  .ok());
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "b");
  EXPECT_EQ(number, -3);
  EXPECT_EQ(maybe, 4);
  EXPECT_EQ(absent, std::nullopt);
  EXPECT_EQ(real, 0.5);
  EXPECT_EQ(list, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(rest, (std::vector<std::string>{"a", "c"}));
}

TEST(ParseArguments, SaysTheBoundsInTheirOwnKind) {
  std::int64_t number = 0;
  std::optional<double> real;
  Argument least{"--least", "N", "h", &number}, within{"--within", "X", "h", &real};
  least.min = 1;
  within.min = 0.5;
  within.max = 2;
  const std::vector<Argument> arguments = {least, within, {"--any", "X", "h", &real}};
  const auto refusal = [&](std::vector<std::string> words) {
    return std::string(MessageOf(ParseArguments(arguments, std::move(words))));
  };
  EXPECT_EQ(refusal({"--least", "0"}), "--least: expected a whole number from 1 on, not '0'");
  EXPECT_EQ(refusal({"--least", "1.5"}), "--least: expected a whole number from 1 on, not '1.5'");
  EXPECT_EQ(refusal({"--within", "3"}), "--within: expected a number in 0.5..2, not '3'");
  EXPECT_EQ(refusal({"--within", "nan"}), "--within: expected a number in 0.5..2, not 'nan'");
  EXPECT_EQ(refusal({"--any", "inf"}), "--any: expected a number, not 'inf'");
  EXPECT_EQ(refusal({"--any", "1e400"}), "--any: expected a number, not '1e400'");
}

TEST(ParseArguments, TakesWordsBehindTwoDashesAsTheyAre) {
  bool flag = false;
  std::vector<std::string> rest;
  const std::vector<Argument> arguments = {{"--flag", "", "h", &flag}, {"REST", "", "h", &rest}};
  ASSERT_TRUE(ParseArguments(arguments, {"a", "--", "--flag", "--", "-b"}).ok());
  EXPECT_FALSE(flag);
  EXPECT_EQ(rest, (std::vector<std::string>{"a", "--flag", "--", "-b"}));
}

TEST(ParseArguments, RefusesWhatDoesNotFit) {
  std::int64_t number = 0;
  std::string choice;
  Argument bounded{"--number", "N", "h", &number};
  bounded.min = 1;
  bounded.max = 9;
  Argument chosen{"--choice", "C", "h", &choice};
  chosen.choices = {"one", "two"};
  const std::vector<Argument> arguments = {bounded, chosen};
  const std::vector<std::vector<std::string>> bad = {
      {"--number", "10"}, {"--number", "x"},     {"--number", "1.5"},
      {"--number"},       {"--choice", "three"}, {"--number", "99999999999999999999"},
      {"--nubmer", "3"},  {"surplus"},           {"--number", "1", "--number", "2"}};
  for (const auto& words : bad) {
    EXPECT_EQ(ParseArguments(arguments, words).code(), absl::StatusCode::kInvalidArgument)
        << words[0];
  }
}

}  // namespace
}  // namespace patchbay::cli

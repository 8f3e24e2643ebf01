#include "runtime/format/yaml/key_table.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::config {
namespace {

Key Table() {
  return {.name = "demo",
          .type = KeyType::kMap,
          .members = {
              {.name = "threads",
               .type = KeyType::kInt,
               .fallback = 4,
               .unit = "threads",
               .min = 1,
               .max = 64,
               .help = "how many"},
              {.name = "ratio", .type = KeyType::kFloat, .fallback = 0.5, .min = 0, .max = 1},
              {.name = "name", .type = KeyType::kString, .required = true},
              {.name = "mode",
               .type = KeyType::kChoice,
               .fallback = "fast",
               .choices = {"fast", "slow"}},
              {.name = "on", .type = KeyType::kBool, .fallback = false},
              {.name = "size", .type = KeyType::kIntList, .min_items = 2, .max_items = 2},
              {.name = "paths", .type = KeyType::kStringList, .fallback = Json::array()},
              {.name = "inner",
               .type = KeyType::kMap,
               .members = {{.name = "low", .type = KeyType::kInt, .fallback = 1},
                           {.name = "high", .type = KeyType::kInt, .fallback = 2}},
               .check =
                   [](const Json& v) {
                     return v["low"] < v["high"]
                                ? absl::OkStatus()
                                : Status(absl::InvalidArgumentError("low must be below high"));
                   }},
              {.name = "steps",
               .type = KeyType::kSteps,
               .fallback = Json::array(),
               .max_items = 3,
               .members = {{.name = "flip",
                            .type = KeyType::kMap,
                            .members = {{.name = "p", .type = KeyType::kFloat, .fallback = 0.5}}},
                           {.name = "clip",
                            .type = KeyType::kMap,
                            .members = {{.name = "range",
                                         .type = KeyType::kFloatList,
                                         .min_items = 2,
                                         .max_items = 2}}}}}}};
}

StatusOr<Json> Read(std::string_view text) {
  PB_ASSIGN_OR_RETURN(const YamlNode node, ParseYaml(text, "f.yaml"));
  return Validate(node, Table());
}

std::string ErrorOf(std::string_view text) {
  const auto value = Read(text);
  return value.ok() ? "" : std::string(MessageOf(value.status()));
}

TEST(KeyTable, AListInPlaceOfOptionsIsTheValueOfTheOnlyOne) {
  const auto value = Read("name: x\nsteps: [{clip: [1, 99.5]}, {clip: {range: [1, 99.5]}}]\n");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(DumpJson((*value)["steps"]),
            R"([{"clip":{"range":[1.0,99.5]}},{"clip":{"range":[1.0,99.5]}}])");
  EXPECT_EQ(ErrorOf("name: x\nsteps:\n- clip: [1]\n"),
            "f.yaml:3: key 'steps[0].clip.range': expected 2 values, got 1");
  EXPECT_EQ(ErrorOf("name: x\nsteps: [{flip: [1]}]\n"),
            "f.yaml:2: key 'steps[0].flip.p': expected a number, got a list");
  EXPECT_EQ(ErrorOf("name: x\nsteps: [{clip: 1}]\n"),
            "f.yaml:2: key 'steps[0].clip': expected a map of keys, got '1'");
}

TEST(KeyTable, FillsDefaultsIn) {
  const auto value = Read("name: x\n");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(DumpJson(*value),
            R"({"inner":{"high":2,"low":1},"mode":"fast","name":"x","on":false,"paths":[],)"
            R"("ratio":0.5,"steps":[],"threads":4})");
}

TEST(KeyTable, TakesWhatTheFileSays) {
  const auto value = Read(
      "name: 12\nthreads: 8\nratio: 1\nmode: slow\non: true\nsize: [3, 4]\npaths: a b\n"
      "inner: {high: 9}\nsteps: [flip, {flip: {p: 1}}, {flip: }]\n");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(DumpJson(*value),
            R"({"inner":{"high":9,"low":1},"mode":"slow","name":"12","on":true,"paths":["a b"],)"
            R"("ratio":1.0,"size":[3,4],"steps":[{"flip":{"p":0.5}},{"flip":{"p":1.0}},)"
            R"({"flip":{"p":0.5}}],"threads":8})");
}

TEST(KeyTable, UnknownKeysNameTheLineAndTheNearestKey) {
  EXPECT_EQ(ErrorOf("name: x\ntreads: 3\n"),
            "f.yaml:2: unknown key 'treads' (did you mean 'threads'?)");
  EXPECT_EQ(ErrorOf("name: x\ninner:\n  hihg: 3\n"),
            "f.yaml:3: unknown key 'inner.hihg' (did you mean 'high'?)");
  EXPECT_EQ(ErrorOf("name: x\nsteps:\n  - flp: {}\n"),
            "f.yaml:3: unknown key 'steps[0].flp' (did you mean 'flip'?)");
  EXPECT_EQ(ErrorOf("name: x\nsteps: [{flip: {quantity: 1}}]\n"),
            "f.yaml:2: unknown key 'steps[0].flip.quantity' (known: p)");
}

TEST(KeyTable, WrongTypesNameTheLineAndWhatWasExpected) {
  EXPECT_EQ(ErrorOf("name: x\nthreads: many\n"),
            "f.yaml:2: key 'threads': expected an integer, got 'many'");
  EXPECT_EQ(ErrorOf("name: x\nthreads: 1.5\n"),
            "f.yaml:2: key 'threads': expected an integer, got '1.5'");
  EXPECT_EQ(ErrorOf("name: x\nthreads: '3'\n"),
            "f.yaml:2: key 'threads': expected an integer, got '3'");
  EXPECT_EQ(ErrorOf("name: x\nthreads: [3]\n"),
            "f.yaml:2: key 'threads': expected an integer, got a list");
  EXPECT_EQ(ErrorOf("name: x\nthreads: 99999999999999999999\n"),
            "f.yaml:2: key 'threads': expected an integer, got '99999999999999999999'");
  EXPECT_EQ(ErrorOf("name: x\non: 1\n"), "f.yaml:2: key 'on': expected true or false, got '1'");
  EXPECT_EQ(ErrorOf("name: x\nratio: .nan\n"),
            "f.yaml:2: key 'ratio': expected a number, got '.nan'");
  EXPECT_EQ(ErrorOf("name: {a: 1}\n"), "f.yaml:1: key 'name': expected text, got a map");
  EXPECT_EQ(ErrorOf("name: x\nmode: fats\n"),
            "f.yaml:2: key 'mode': expected one of fast, slow, got 'fats' (did you mean 'fast'?)");
  EXPECT_EQ(ErrorOf("- 1\n"), "f.yaml:1: expected a map of keys, got a list");
}

TEST(KeyTable, RangesLengthsAndRulesAreHeld) {
  EXPECT_EQ(ErrorOf("name: x\nthreads: 65\n"),
            "f.yaml:2: key 'threads': 65 is out of range (1..64 threads)");
  EXPECT_EQ(ErrorOf("name: x\nratio: -0.25\n"),
            "f.yaml:2: key 'ratio': -0.25 is out of range (0..1)");
  EXPECT_EQ(ErrorOf("name: x\nsize: [1]\n"), "f.yaml:2: key 'size': expected 2 values, got 1");
  EXPECT_EQ(ErrorOf("name: x\ninner: {low: 3}\n"), "f.yaml:2: key 'inner': low must be below high");
  EXPECT_EQ(ErrorOf("name: x\nsteps: [flip, flip, flip, flip]\n"),
            "f.yaml:2: key 'steps': more than 3 steps");
  EXPECT_EQ(ErrorOf("name: x\nsteps: [{flip: {}, other: {}}]\n"),
            "f.yaml:2: key 'steps[0]': expected one name with its options, like {flip: {}}");
  EXPECT_EQ(ErrorOf("threads: 3\n"), "f.yaml:1: key 'name' is missing");
}

TEST(KeyTable, JsonPassesThroughTheSameRules) {
  const auto value = ValidateJson(Json{{"name", "x"}, {"threads", 7}}, Table(), "payload");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)["threads"], 7);
  const auto again = ValidateJson(*value, Table(), "payload");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *value);
  const auto wrong = ValidateJson(Json{{"name", "x"}, {"threads", "7"}}, Table(), "payload");
  EXPECT_EQ(MessageOf(wrong.status()), "payload: key 'threads': expected an integer, got '7'");
  EXPECT_FALSE(ValidateJson(Json(3), Table(), "payload").ok());
}

TEST(KeyTable, TheLineOfAKeyIsFoundByItsPath) {
  const auto node = ParseYaml(
      "name: x\ninner:\n  low: 1\nsteps:\n  - flip\n  - flip:\n      odds: 1\n", "f.yaml");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(LineOf(*node, "name"), 1);
  EXPECT_EQ(LineOf(*node, "inner.low"), 3);
  EXPECT_EQ(LineOf(*node, "inner.high"), 2) << "not in the file: the map around it";
  EXPECT_EQ(LineOf(*node, "steps[0]"), 5);
  EXPECT_EQ(LineOf(*node, "steps[0].flip"), 5);
  EXPECT_EQ(LineOf(*node, "steps[1].flip.odds"), 7);
  EXPECT_EQ(LineOf(*node, "steps[2].flip"), 4);
  for (const char* path : {"", "other", "other.low", "[0]", "steps[", "steps[x]", "name."}) {
    EXPECT_LE(LineOf(*node, path), 4) << path;
  }
  EXPECT_EQ(LineOf(*node, "other.low"), 0);
}

TEST(KeyTable, DocumentsEveryKey) {
  const std::string page = DocumentKeys(Table());
  EXPECT_NE(page.find("| `threads` | int | `4` | threads, 1..64 | how many |"), std::string::npos)
      << page;
  EXPECT_NE(page.find("| `name` | text | required | - |  |"), std::string::npos);
  EXPECT_NE(page.find("| `inner.low` | int | `1` |"), std::string::npos);
}

TEST(KeyTable, NamesOfTheUsersOwnHaveValuesOfOneKind) {
  Key inner{.name = "inner",
            .type = KeyType::kMap,
            .optional = true,
            .members = {{.name = "low", .type = KeyType::kInt, .fallback = 1}}};
  const Key table{
      .name = "demo",
      .type = KeyType::kMap,
      .members = {{.name = "where",
                   .type = KeyType::kNamed,
                   .members = {{.name = "", .type = KeyType::kStringList}}},
                  {.name = "splits",
                   .type = KeyType::kNamed,
                   .members = {{.name = "", .type = KeyType::kMap, .members = {inner}}}}}};
  const auto read = [&](std::string_view text) -> std::string {
    const auto node = ParseYaml(text, "run.yaml");
    EXPECT_TRUE(node.ok()) << node.status();
    const auto value = Validate(*node, table);
    return value.ok() ? DumpJson(*value) : std::string(MessageOf(value.status()));
  };
  EXPECT_EQ(read("{}"), "{}");
  EXPECT_EQ(read("where: {phase: portal, use: [1, 2]}"),
            R"({"where":{"phase":["portal"],"use":["1","2"]}})");
  EXPECT_EQ(read("splits: {val: , test: {inner: {}}}"),
            R"({"splits":{"test":{"inner":{"low":1}},"val":{}}})");
  EXPECT_EQ(read("where:\n  phase: {a: b}"),
            "run.yaml:2: key 'where.phase': expected text or a list of texts, got a map");
  EXPECT_EQ(read("splits:\n  val: {innr: 1}"),
            "run.yaml:2: unknown key 'splits.val.innr' (did you mean 'inner'?)");
  EXPECT_EQ(read("where: portal"),
            "run.yaml:1: key 'where': expected a map of names and values, got 'portal'");
}

}  // namespace
}  // namespace patchbay::config

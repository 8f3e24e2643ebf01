#include "runtime/format/yaml/yaml.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::config {
namespace {

std::string YamlErrorOf(std::string_view text) {
  const auto node = ParseYaml(text, "f.yaml");
  return node.ok() ? "" : std::string(MessageOf(node.status()));
}

TEST(Yaml, ReadsScalarsByTheCoreSchema) {
  const auto node = ParseYaml(
      "a: 1\nb: 1.5\nc: true\nd: text\ne: '1'\nf: ~\ng: [1, two]\nh: 4_096\ni: 1e-3\nj: inf\n",
      "f.yaml");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(DumpJson(YamlToJson(*node)),
            R"({"a":1,"b":1.5,"c":true,"d":"text","e":"1","f":null,"g":[1,"two"],"h":4096,)"
            R"("i":0.001,"j":"inf"})");
}

TEST(Yaml, KnowsTheLineOfEveryNode) {
  const auto node = ParseYaml("a: 1\n\nb:\n  c: 2\n", "f.yaml");
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->Find("a")->Where(), "f.yaml:1");
  EXPECT_EQ(node->Find("b")->Find("c")->Where(), "f.yaml:4");
}

TEST(Yaml, EmptyTextIsAnEmptyMap) {
  for (const char* text : {"", "# only a comment\n"}) {
    const auto node = ParseYaml(text, "f.yaml");
    ASSERT_TRUE(node.ok()) << node.status();
    EXPECT_EQ(node->members.size(), 0u);
  }
}

TEST(Yaml, RefusesMalformedTextWithItsLine) {
  EXPECT_EQ(YamlErrorOf("a: 1\nb: [1, 2\n").substr(0, 9), "f.yaml:3:");
  EXPECT_EQ(YamlErrorOf("a: 1\nb: 2\na: 3\n"), "f.yaml:3: key 'a' appears twice");
  EXPECT_EQ(YamlErrorOf("a: 1\n? [x]\n: 2\n"), "f.yaml:2: a key must be plain text");
  EXPECT_NE(YamlErrorOf("a: 1\n---\nb: 2\n").find("only one document"), std::string::npos);
  EXPECT_NE(YamlErrorOf("a: !!python/object:os.system x\n").find("is not supported"),
            std::string::npos);
  EXPECT_EQ(YamlErrorOf("a: *nothing\n").substr(0, 9), "f.yaml:1:");
  EXPECT_EQ(YamlErrorOf("a: 1\nb: {c: 1\n"), "f.yaml:3: '{' is not closed");
  EXPECT_EQ(YamlErrorOf("a: [1, 2\n"), "f.yaml:2: '[' is not closed");
  EXPECT_EQ(YamlErrorOf("a: 1\n\tb: 2\n"), "f.yaml:2: tabs may not indent: use spaces");
  EXPECT_EQ(YamlErrorOf("a:\n\t- b\n"), "f.yaml:2: tabs may not indent: use spaces");
  EXPECT_EQ(YamlErrorOf("a:\n  b: 1\n \t- c\n"), "f.yaml:3: tabs may not indent: use spaces");
  EXPECT_EQ(YamlErrorOf("a: - b\n"),
            "f.yaml:1: a list item is not allowed here: begin it on a line of its own");
  EXPECT_EQ(YamlErrorOf("a: 1\nb: M\xFCller\n"),
            "f.yaml:2: byte 252 is not UTF-8 here: save the file as UTF-8");
  EXPECT_TRUE(ParseYaml("a: M\xC3\xBCller\n", "f.yaml").ok());
  EXPECT_NE(YamlErrorOf("a: &x {b: 1}\nc:\n  <<: *x\n").find("merge keys"), std::string::npos);
}

TEST(Yaml, ExpandsAliasesButNotWithoutLimit) {
  const auto node = ParseYaml("a: &x [1, 2]\nb: *x\n", "f.yaml");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(DumpJson(YamlToJson(*node)), R"({"a":[1,2],"b":[1,2]})");

  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    laughs += StrCat("a", i, ": &a", i, " [");
    for (int k = 0; k < 10; ++k) laughs += StrCat(k == 0 ? "" : ", ", "*a", i - 1);
    laughs += "]\n";
  }
  EXPECT_NE(YamlErrorOf(laughs).find("more than 100000 values"), std::string::npos)
      << YamlErrorOf(laughs);
}

TEST(Yaml, RefusesDeepNestingAndLongText) {
  for (const std::size_t depth : {kMaxYamlDepth, kMaxYamlDepth + 1}) {  // the map is one level
    const std::string text = "a: " + std::string(depth - 1, '[') + std::string(depth - 1, ']');
    EXPECT_EQ(ParseYaml(text, "f.yaml").ok(), depth == kMaxYamlDepth) << depth;
  }
  const std::string flow = "a: " + std::string(100, '[') + std::string(100, ']');
  EXPECT_NE(YamlErrorOf(flow).find("nested deeper"), std::string::npos) << YamlErrorOf(flow);
  const std::string brackets = std::string(900'000, '[');
  EXPECT_NE(YamlErrorOf(brackets).find("nested deeper"), std::string::npos);
  std::string block;
  for (int i = 0; i < 100; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(YamlErrorOf(block).find("nested deeper"), std::string::npos);
  EXPECT_NE(YamlErrorOf(std::string(kMaxYamlBytes + 1, 'a')).find("more than"), std::string::npos);
}

TEST(Yaml, RefusesMapsAndAnchorsWhoseCostGrowsFasterThanTheirText) {
  std::string keys;
  for (int i = 0; i < 60'000; ++i) keys += StrCat("k", i, ": 1\n");
  EXPECT_NE(YamlErrorOf(keys).find("more than 5000 keys"), std::string::npos) << YamlErrorOf(keys);
  std::string anchors;
  for (int i = 0; i < 25; ++i) anchors += StrCat("&a", i, " [");
  for (int i = 0; i < 20'000; ++i) anchors += "1,";
  anchors += "1" + std::string(25, ']');
  EXPECT_NE(YamlErrorOf(anchors).find("more than 100000 values"), std::string::npos);
}

TEST(Yaml, RefusesManyCompactListsWithoutExhaustingTheStack) {
  std::string dashes;
  for (int i = 0; i < 200'000; ++i) dashes += "- ";
  EXPECT_FALSE(ParseYaml(dashes, "f.yaml").ok());
  std::string marks;
  for (int i = 0; i < 200'000; ++i) marks += "? ";
  EXPECT_FALSE(ParseYaml(marks, "f.yaml").ok());
}

TEST(Yaml, TextThatIsNotYamlIsAnErrorAndNeverACrash) {
  std::uint64_t state = 99;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      static constexpr std::string_view kAlphabet = "ab:-[]{},&*!?|>'\"%@`#\n\t 0.~<";
      text.push_back(kAlphabet[(state >> 33) % kAlphabet.size()]);
    }
    const auto node = ParseYaml(text, "f.yaml");
    if (node.ok()) (void)DumpJson(YamlToJson(*node));
    EXPECT_TRUE(node.ok() || node.status().code() == absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Yaml, MergePutsTheSecondOverTheFirst) {
  const auto under = ParseYaml("a: 1\nb: {c: 2, d: [1, 2]}\n", "u.yaml");
  const auto over = ParseYaml("b: {d: [3]}\ne: 5\na: ~\n", "o.yaml");
  ASSERT_TRUE(under.ok() && over.ok());
  const YamlNode merged = MergeYaml(*under, *over);
  EXPECT_EQ(DumpJson(YamlToJson(merged)), R"({"b":{"c":2,"d":[3]},"e":5})");
  EXPECT_EQ(merged.Find("e")->Where(), "o.yaml:2");
}

}  // namespace
}  // namespace patchbay::config

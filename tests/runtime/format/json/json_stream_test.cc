// Texts of the parts of a JSON text.
#include "runtime/format/json/json_stream.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(MembersOfJson, AreTheTextsOfTheValues) {
  const std::string text =
      " {\"a\" : [1, {\"]\": \"}\\\"\"}] ,\n\"b\":-1.5e3\t, \"c\":null,"
      "\"d\":\"x\\\\\",\"\\u0065\":{}, \"f\":true} ";
  const auto members = MembersOfJson(text, "a.json");
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(*members, (JsonMembers{{"a", "[1, {\"]\": \"}\\\"\"}]"},
                                   {"b", "-1.5e3"},
                                   {"c", "null"},
                                   {"d", "\"x\\\\\""},
                                   {"e", "{}"},
                                   {"f", "true"}}));
  EXPECT_TRUE(MembersOfJson("{}", "a.json")->empty());
  EXPECT_EQ(MembersOfJson("{\"a\":1,\"a\":2}", "a.json")->at("a"), "2") << "as in a value";
}

TEST(MembersOfJson, JoinedAgainAreTheObject) {
  const Json value = {{"list", {1, "b\xff", nullptr}}, {"text", std::string("\0", 1)}, {"x", 0.1}};
  const std::string text = DumpJson(value);
  std::map<std::string, std::string> members;
  const auto found = MembersOfJson(text, "a.json");
  for (const auto& [key, member] : *found) members[key] = member;
  EXPECT_EQ(members.size(), 3u);
  EXPECT_EQ(JoinMembers(members), text);
  EXPECT_EQ(*ParseJson(members["list"], "a.json"), value["list"]);
  EXPECT_EQ(JoinMembers({}), "{}");
}

TEST(ElementsOfJson, AreTheTextsOfTheValues) {
  using Texts = std::vector<std::string_view>;
  EXPECT_EQ(*ElementsOfJson("[1 ,\"[,\", [2,3],{} ]", "a.json"),
            (Texts{"1", "\"[,\"", "[2,3]", "{}"}));
  EXPECT_EQ(*ElementsOfJson(" []", "a.json"), Texts());
}

TEST(PartsOfJson, AreRefusedAsTheWholeText) {
  const std::string deep(kMaxJsonDepth + 1, '[');
  const std::string too_deep = deep + std::string(deep.size(), ']');
  for (const std::string& text :
       {std::string(), std::string("{\"a\":}"), std::string("{\"a\":1"), std::string("[1,]"),
        std::string("{\"a\":\"\xff\"}"), std::string("[1e999]"), std::string("[1] x"), too_deep,
        std::string(kMaxJsonBytes + 1, ' ')}) {
    const Status whole = ParseJson(text, "a.json").status();
    ASSERT_FALSE(whole.ok());
    EXPECT_EQ(MembersOfJson(text, "a.json").status(), whole) << text.substr(0, 20);
    EXPECT_EQ(ElementsOfJson(text, "a.json").status(), whole) << text.substr(0, 20);
  }
  EXPECT_EQ(MessageOf(MembersOfJson("[1]", "a.json").status()), "a.json: expected an object");
  EXPECT_EQ(MessageOf(ElementsOfJson("{}", "a.json").status()), "a.json: expected an array");
  EXPECT_FALSE(MembersOfJson("7", "a.json").ok());
}

}  // namespace
}  // namespace patchbay

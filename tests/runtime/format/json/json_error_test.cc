// Errors for text that is not JSON.
#include <string>

#include <gtest/gtest.h>

#include "runtime/format/json/json.h"
#include "runtime/format/json/json_stream.h"

namespace patchbay {
namespace {

std::string Said(std::string_view text) {
  return std::string(MessageOf(ParseJson(text, "a.json").status()));
}

TEST(JsonErrors, NameTheLineAndTheColumn) {
  EXPECT_EQ(Said("{\n\"a\": 1,\n\"b\" 2}"), "parse json: a.json: not JSON (line 3, column 5)");
  EXPECT_EQ(Said("x"), "parse json: a.json: not JSON (line 1, column 1)");
  EXPECT_EQ(Said("slide,score\na,1\n"), "parse json: a.json: not JSON (line 1, column 1)");
  EXPECT_EQ(Said("[1,\n2"), "parse json: a.json: not JSON: it ends too early (line 2, column 2)");
  EXPECT_EQ(Said("\xff\xfe"), "parse json: a.json: not JSON (line 1, column 1)");
}

TEST(JsonErrors, OfAnEmptyFileSayThatItIsEmpty) {
  EXPECT_EQ(Said(""), "parse json: a.json: not JSON: it is empty");
  EXPECT_EQ(Said(" \n"), "parse json: a.json: not JSON: it is empty");
}

TEST(JsonErrors, OfNumbersNameTheNumber) {
  EXPECT_EQ(Said("{\"a\": 1e999}"), "parse json: a.json: a number out of the range of a double");
}

TEST(JsonErrors, AreTheSameForLargeTexts) {
  const auto take = [](Json&) -> StatusOr<bool> { return false; };
  EXPECT_EQ(MessageOf(ParseJsonTaking("{\n,", "a.json", take).status()),
            "parse json: a.json: not JSON (line 2, column 1)");
}

TEST(JsonErrors, OfDeepTextsBeginBeyondTheDeepestOne) {
  const auto take = [](Json&) -> StatusOr<bool> { return false; };
  for (const int depth : {kMaxJsonDepth, kMaxJsonDepth + 1}) {
    const auto side = static_cast<std::size_t>(depth);
    const std::string text = std::string(side, '[') + "1" + std::string(side, ']');
    EXPECT_EQ(ParseJson(text, "a.json").ok(), depth == kMaxJsonDepth);
    EXPECT_EQ(ParseJsonTaking(text, "a.json", take).ok(), depth == kMaxJsonDepth);
  }
}

TEST(JsonErrors, OfSizesAreForPeople) {
  EXPECT_EQ(MessageOf(ParseJson(std::string(2048, ' '), "a.json", 1024).status()),
            "parse json: a.json: 2.0 KiB, more than 1.0 KiB");
  EXPECT_EQ(MessageOf(ParseJson(std::string(1025, ' '), "a.json", 1024).status()),
            "parse json: a.json: 1025 bytes, more than 1024");
}

}  // namespace
}  // namespace patchbay

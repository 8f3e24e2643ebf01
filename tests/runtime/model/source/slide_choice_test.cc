#include "runtime/model/source/slide_choice.h"

#include <gtest/gtest.h>

#include "runtime/core/outcome.h"
#include "tests/described.h"

namespace patchbay {
namespace {

TEST(SlideChoice, ComesBackAsItWasWritten) {
  test::ExpectEveryFieldComesBack<SlideChoice>();
  test::ExpectEveryFieldComesBack<ChoiceOfRows>();
  EXPECT_EQ(DumpJson(JsonOf(SlideChoice())), "{}");
  EXPECT_FALSE(SlideChoice().IsMade());
  EXPECT_TRUE((SlideChoice{0, ""}.IsMade()));
}

TEST(SlideChoice, IsShownAndComparedByItsTexts) {
  EXPECT_EQ(SlideChoice().ToString(), "");
  EXPECT_EQ((SlideChoice{1.5, ""}.ToString()), "focal plane at 1.5 um");
  EXPECT_EQ((SlideChoice{-2, "DAPI"}.ToString()), "focal plane at -2 um, optical path DAPI");
  EXPECT_EQ((SlideChoice{std::nullopt, "2"}.ToString()), "optical path 2");
  const SlideChoice choice{1.5, "2"};
  EXPECT_TRUE(choice.IsSameAs({1.5000001, "2"}));
  for (const SlideChoice& other : {SlideChoice{1.51, "2"}, {1.5, "3"}, {std::nullopt, "2"}, {}}) {
    EXPECT_FALSE(choice.IsSameAs(other)) << other.ToString();
    EXPECT_FALSE(other.IsSameAs(choice)) << other.ToString();
  }
}

TEST(SlideChoice, ACellIsTheHeightOfAFocalPlane) {
  EXPECT_EQ(ParseFocalPlane("").value(), std::nullopt);
  EXPECT_EQ(ParseFocalPlane("0").value(), 0);
  EXPECT_EQ(ParseFocalPlane("-1.25").value(), -1.25);
  for (const char* cell : {"1,5", "1.5 um", " 1", "nan", "inf", "1e9", "first"}) {
    EXPECT_NE(
        MessageOf(ParseFocalPlane(cell).status()).find("not the height of a focal plane in um"),
        std::string::npos)
        << cell;
  }
}

}  // namespace
}  // namespace patchbay

// Settings of tissue as texts.
#include "runtime/model/jobs/tissue_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/outcome.h"

namespace patchbay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TissueOptions, EveryKeyIsReadInItsKind) {
  const auto read =
      ParseTissueOptions({"channel=grey", "threshold=otsu", "blur=3", "closing=40.5",
                          "min-area=2e3", "max_hole=0", "pen=no", "black=30", "threshold=17"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->channel, "grey");
  EXPECT_EQ(ThresholdOf(read->threshold), 17);
  EXPECT_EQ(read->blur, 3);
  EXPECT_EQ(read->closing, 40.5);
  EXPECT_EQ(read->min_area, 2000);
  EXPECT_EQ(read->max_hole, 0);
  EXPECT_EQ(read->pen, "no");
  EXPECT_EQ(read->black, 30);
  EXPECT_FALSE(ParseTissueOptions({})->closing.has_value());
}

TEST(TissueOptions, RefusalsNameKeyValueAndRange) {
  const auto said = [](const char* text) {
    const auto read = ParseTissueOptions({text});
    return read.ok() ? std::string() : std::string(MessageOf(read.status()));
  };
  EXPECT_THAT(said("closing"), HasSubstr("'closing': expected KEY=VALUE"));
  EXPECT_THAT(said("close=3"), HasSubstr("'close=3': no such key (channel, threshold, blur, "));
  EXPECT_THAT(said("closing=wide"),
              HasSubstr("closing: expected a number in 0..10000, not 'wide'"));
  EXPECT_THAT(said("closing=-1"), HasSubstr("closing: expected a number in 0..10000, not '-1'"));
  EXPECT_THAT(said("closing=nan"), HasSubstr("closing: expected a number"));
  EXPECT_THAT(said("blur=4"), HasSubstr("blur: expected one of 1, 3, 5"));
  EXPECT_THAT(said("blur=3.5"), HasSubstr("blur: expected one of 1, 3, 5"));
  EXPECT_THAT(said("pen=maybe"), HasSubstr("pen: expected one of yes, no, not 'maybe'"));
  EXPECT_THAT(said("threshold=256"), HasSubstr("threshold: expected otsu, or 0 to 255, not '256'"));
  EXPECT_THAT(said("threshold=-1"), HasSubstr("threshold: expected otsu"));
  EXPECT_THAT(said("black=256"), HasSubstr("black: expected a whole number in 0..255"));
}

TEST(TissueOptions, ACellHoldsSeveral) {
  EXPECT_THAT(SplitTissueOptions("  closing=40; pen=no;;blur=3\t"),
              ElementsAre("closing=40", "pen=no", "blur=3"));
  EXPECT_THAT(SplitTissueOptions(" ; "), ElementsAre());
}

}  // namespace
}  // namespace patchbay

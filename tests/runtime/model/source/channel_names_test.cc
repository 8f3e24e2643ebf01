#include "runtime/model/source/channel_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace patchbay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string RefusalOf(const std::vector<std::string>& names) {
  return std::string(CheckChannelNames(names).message());
}

TEST(ChannelNames, AreShortPrintableAndDifferent) {
  EXPECT_EQ(RefusalOf({"T1", "T2, late", "\xc3\xa9"}), "");
  EXPECT_THAT(RefusalOf({"T1", ""}), HasSubstr("without a name"));
  EXPECT_THAT(RefusalOf({"T1", "T2", "T1"}), HasSubstr("channel 'T1' is there twice"));
  EXPECT_THAT(RefusalOf({std::string(65, 'x')}), HasSubstr("up to 64 bytes"));
  EXPECT_THAT(RefusalOf({"a\nb"}), HasSubstr("printable"));
  EXPECT_THAT(RefusalOf({"\xff"}), HasSubstr("printable"));
  EXPECT_THAT(RefusalOf(std::vector<std::string>(65, "x")), HasSubstr("65 channels"));
}

TEST(ChannelNames, OfADatasetGoByTheirNumbers) {
  const auto of = [](const char* text) { return DatasetChannels(ParseJson(text, "x").value()); };
  EXPECT_THAT(of(R"({"channel_names": {"1": "b", "0": "a"}})"), ElementsAre("a", "b"));
  EXPECT_THAT(of(R"({"modality": {"0": "FLAIR", "1": "T1w"}})"), ElementsAre("FLAIR", "T1w"));
  EXPECT_THAT(of(R"({"channel_names": ["a", "b"]})"), ElementsAre("a", "b"));
  for (const char* wrong : {R"({"modality": {"1": "a", "2": "b"}})", R"({"modality": {"x": "a"}})",
                            R"({"modality": {"0": 1}})", R"({"modality": "a"})", "[]", "{}"}) {
    EXPECT_THAT(of(wrong), IsEmpty()) << wrong;
  }
}

TEST(ChannelNames, OfAStoreAreThoseOfItsChannels) {
  const auto of = [](const char* text) { return ChannelNames(ParseJson(text, "x").value()); };
  EXPECT_THAT(of(R"({"channels": [{"name": "a"}, {"name": "b"}]})"), ElementsAre("a", "b"));
  for (const char* none : {R"({"channels": [{"name": "a"}, {}]})", R"({"channels": 3})", "{}", "[]",
                           R"({"channels": [[]]})"}) {
    EXPECT_THAT(of(none), IsEmpty()) << none;
  }
}

TEST(ChannelNames, TellWellKnownModalities) {
  for (const auto& [name, modality] :
       {std::pair{"CT", "CT"}, {"pet", "PT"}, {"T2-FLAIR", "MR"}, {"t1gd", "MR"}, {"ADC", "MR"}}) {
    const auto found = ChannelModality(name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->ToString(), modality);
  }
  EXPECT_FALSE(ChannelModality("arterial"));
  EXPECT_FALSE(ChannelModality(""));
}

}  // namespace
}  // namespace patchbay

#include "runtime/model/source/modality.h"

#include "gtest/gtest.h"
#include "runtime/format/json/described.h"

namespace patchbay {
namespace {

std::string TextOf(const std::optional<Modality>& modality) {
  return modality ? modality->ToString() : "";
}

TEST(Modality, HasTextsThatNameItAndItsUnit) {
  for (const std::string& name : ModalityNames()) {
    const auto parsed = ParseModality(name);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->ToString(), name);
    EXPECT_EQ(parsed->IsHu(), name == "CT");
  }
  EXPECT_EQ(ParseModality("mri")->ToString(), "MR");
  EXPECT_EQ(ParseModality("Pet")->ToString(), "PT");
  EXPECT_EQ(ParseModality("pt:suvBW")->unit, "SUVbw");
  for (const char* wrong : {"", "CTT", "CT:HU2", "MR:HU", "PT:"}) {
    EXPECT_NE(ParseModality(wrong).status().message().find("is none of CT, CT:arbitrary, MR"),
              std::string::npos)
        << wrong;
  }
}

TEST(Modality, OfAStoreIsItsRecordElseThatOfItsSeries) {
  EXPECT_EQ(TextOf(RecordedModality({{"acquisition", {{"modality", "CT"}}}})), "CT");
  EXPECT_EQ(TextOf(RecordedModality({{"acquisition", {{"modality", "MR"}}}})), "MR");
  EXPECT_EQ(TextOf(RecordedModality({{"acquisition", {{"modality", "PT"}, {"unit", "SUVbw"}}}})),
            "PT:SUVbw");
  EXPECT_EQ(TextOf(RecordedModality({{"acquisition", {{"modality", "NM"}}}})), "");
  EXPECT_EQ(TextOf(RecordedModality({{"acquisition", {{"stored_type", "int16"}}}})), "");
  EXPECT_EQ(TextOf(RecordedModality(Json::object())), "");
  EXPECT_EQ(TextOf(RecordedModality(nullptr)), "");
  Json own = {{"acquisition", {{"modality", "CT"}}}};
  own["modality"] = JsonOf(ModalityRecord{{"MR", "arbitrary"}, "table", Modality{"CT", "HU"}});
  EXPECT_EQ(TextOf(RecordedModality(own)), "MR");
  own["modality"]["unit"] = "HU";
  EXPECT_EQ(TextOf(RecordedModality(own)), "") << "no unit of MR";
}

TEST(Modality, IsReadFromSideCarsAndDatasets) {
  const auto side_car = [](const Json& json) { return TextOf(SideCarModality(json)); };
  EXPECT_EQ(side_car({{"Modality", "MR"}}), "MR");
  EXPECT_EQ(side_car({{"Modality", "PT"}, {"Units", "Bq/mL"}}), "PT:Bq/ml");
  EXPECT_EQ(side_car({{"Modality", "PT"}}), "PT");
  EXPECT_EQ(side_car({{"Modality", "NM"}}), "OT");
  EXPECT_EQ(side_car({{"Modality", 1}}), "");
  EXPECT_EQ(side_car(Json::array()), "");
  const auto dataset = [](const char* key, const Json& json) {
    return TextOf(DatasetModality({{key, json}}));
  };
  EXPECT_EQ(dataset("channel_names", {{"0", "CT"}}), "CT");
  EXPECT_EQ(dataset("channel_names", {{"0", "T1w"}}), "MR");
  EXPECT_EQ(dataset("modality", {{"0", "MRI"}}), "MR");
  EXPECT_EQ(dataset("modality", {{"0", "PET"}}), "PT");
  EXPECT_EQ(dataset("modality", Json::array({"ct"})), "CT");
  EXPECT_EQ(dataset("channel_names", {{"0", "noNorm"}}), "");
  EXPECT_EQ(dataset("channel_names", {{"0", "CT"}, {"1", "PET"}}), "");
}

}  // namespace
}  // namespace patchbay

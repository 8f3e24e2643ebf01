// Datasets of nnU-Net and the Medical Segmentation Decathlon as cohort tables.
#include "runtime/cli/jobs/nnunet_dataset.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/cohort_table.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

class Dataset : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              StrCat("nnunet-", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    for (const char* below : {"imagesTr", "labelsTr"}) fs::create_directories(folder_ / below);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Put(const std::string& name, const std::string& text = "x") const {
    std::ofstream(folder_ / name) << text;
  }
  void PutCases(const std::string& tail) const {
    for (const char* name : {"colon_001", "colon_002"}) {
      Put(StrCat("imagesTr/", name, tail));
      Put(StrCat("labelsTr/", name, ".nii.gz"));
      Put(StrCat("imagesTr/._", name, tail));
    }
  }
  std::string Error() const {
    return std::string(MessageOf(ReadNnunetDataset(folder_.string()).status()));
  }

  fs::path folder_;
};

TEST_F(Dataset, RegionsBecomeTheClassesOfTheirValues) {
  PutCases("_0000.nii.gz");
  Put("dataset.json", R"({"channel_names": {"0": "T1"}, "labels": {"background": 0, "whole tumour":
      [1, 2, 3], "core": [2, 3], "active": 3}, "regions_class_order": [1, 2, 3],
      "file_ending": ".nii.gz"})");
  const auto dataset = ReadNnunetDataset(folder_.string());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const std::string text = *ClassTableOf(*dataset);
  EXPECT_TRUE(
      text.starts_with("# region core: class_2 active\n"
                       "# region whole_tumour: class_1 class_2 active\nclasses:\n"))
      << text;
  const auto classes = plan::ParseClassTable(text, "classes.yaml");
  ASSERT_TRUE(classes.ok()) << classes.status();
  const auto values = plan::MaskValues(*classes, "");
  ASSERT_TRUE(values.ok());
  for (const int value : {0, 1, 2, 3}) EXPECT_EQ((*values)[static_cast<std::size_t>(value)], value);
}

constexpr char kNnunet[] =
    R"({"channel_names": {"0": "CT"}, "labels": {"background": 0, "Colon tumour": 1, "ignore": 2},
        "numTraining": 2, "file_ending": ".nii.gz"})";

TEST_F(Dataset, OfNnunetHasItsFoldsAndIgnores) {
  PutCases("_0000.nii.gz");
  Put("dataset.json", kNnunet);
  Put("splits_final.json",
      R"([{"train": ["colon_001"], "val": ["colon_002"]}, {"train": ["colon_002"], "val": []}])");
  const auto dataset = ReadNnunetDataset((folder_ / "dataset.json").string());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const std::string text = CohortTableOf(*dataset, folder_.string() + "/");
  const auto table = plan::ParseCohortTable(text, "cohort.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->Cell(table->rows[0], "path"), "imagesTr/colon_001_0000.nii.gz");
  EXPECT_EQ(table->Cell(table->rows[0], "annotation"), "labelsTr/colon_001.nii.gz");
  EXPECT_EQ(table->Cell(table->rows[0], "modality"), "CT");
  EXPECT_EQ(table->rows[0].slide_id, "colon_001");
  EXPECT_EQ(table->Cell(table->rows[0], "fold_0"), "train");
  EXPECT_EQ(table->Cell(table->rows[1], "fold_0"), "val");
  EXPECT_EQ(table->Cell(table->rows[0], "fold_1"), "");
  const auto classes = plan::ParseClassTable(*ClassTableOf(*dataset), "classes.yaml");
  ASSERT_TRUE(classes.ok()) << classes.status();
  const auto values = plan::MaskValues(*classes, "");
  ASSERT_TRUE(values.ok());
  EXPECT_EQ((*values)[1], 1);
  EXPECT_EQ((*values)[2], plan::kIgnoreClass);
  EXPECT_FALSE((*values)[3].has_value());
  EXPECT_NE(classes->Find("colon_tumour"), nullptr);
  EXPECT_EQ(classes->background, "background");
}

TEST_F(Dataset, OfChannelsHasARowForEachFileOfThem) {
  PutCases("_0000.nii.gz");
  PutCases("_0001.nii.gz");
  Put("dataset.json", R"({"channel_names": {"1": "PET", "0": "CT"}, "labels": {"background": 0},
      "file_ending": ".nii.gz"})");
  const auto dataset = ReadNnunetDataset(folder_.string());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const auto table =
      plan::ParseCohortTable(CohortTableOf(*dataset, folder_.string() + "/"), "cohort.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 4u);
  const plan::CohortRow& second = table->rows[1];
  EXPECT_EQ(second.slide_id, "colon_001_0001");
  EXPECT_EQ(table->Cell(second, "image_id"), "colon_001");
  EXPECT_EQ(table->Cell(second, "channel"), "PET");
  EXPECT_EQ(table->Cell(second, "modality"), "PT");
  EXPECT_EQ(table->Cell(second, "annotation"), "");
  EXPECT_EQ(table->Cell(table->rows[0], "annotation"), "labelsTr/colon_001.nii.gz");
}

TEST_F(Dataset, OfTheDecathlonListsItsImages) {
  PutCases(".nii.gz");
  Put("dataset.json", R"({"modality": {"0": "CT"}, "labels": {"0": "background", "1": "cancer"},
      "training": [{"image": "./imagesTr/colon_001.nii.gz", "label": "./labelsTr/colon_001.nii.gz"},
                   {"image": "./imagesTr/._colon_002.nii.gz", "label": "./labelsTr/colon_002.nii.gz"}]})");
  const auto dataset = ReadNnunetDataset(folder_.string());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ(dataset->cases.size(), 1u);
  EXPECT_EQ(dataset->cases[0].name, "colon_001");
  EXPECT_EQ(dataset->classes[1].name, "cancer");
  EXPECT_TRUE(dataset->folds.empty());
}

TEST_F(Dataset, WhatIsNotReadIsNamed) {
  PutCases("_0000.nii.gz");
  const auto says = [&](const std::string& json, const std::string& text) {
    Put("dataset.json", json);
    EXPECT_NE(Error().find(text), std::string::npos) << Error();
  };
  says("{", "dataset.json");
  says("[]", "not a map");
  says(R"({"labels": {"a": 0}})", "channel_names");
  says(R"({"channel_names": {"0": "CT", "2": "PET"}, "labels": {"a": 0}})",
       "not a name for each number from 0 on");
  says(R"({"channel_names": {"0": "CT", "1": "CT"}, "labels": {"a": 0}})",
       "channel 'CT' is there twice");
  says(
      R"({"channel_names": {"0": "CT", "1": "PET"}, "labels": {"a": 0}, "file_ending": ".nii.gz"})",
      "colon_001_0001.nii.gz': no such file");
  const std::string ct = R"({"channel_names": {"0": "CT"}, )";
  says(ct + R"("labels": {"background": 0, "whole": [1, "x"]}})",
       "labels.whole': a region of other");
  says(ct + R"("labels": {"background": 0, "whole": []}})",
       "labels.whole': a region without values");
  says(ct + R"("labels": {"a": 300}})", "labels.a");
  says(ct + R"("labels": {"a": 0}})", "file_ending");
  says(ct + R"("labels": {"a": 0}, "training": [{"image": "../x.nii", "label": "y"}]})",
       "training[0].image': '../x.nii': not below");
  says(ct + R"("labels": {"a": 0}, "training": [{"image": "imagesTr/no.nii", "label": "y"}]})",
       "no such file");
  says(ct + R"("labels": {"a": 0}, "training": []})", "no case");
  Put("dataset.json", kNnunet);
  Put("splits_final.json", R"([{"train": ["colon_009"], "val": []}])");
  EXPECT_NE(Error().find("splits_final.json: key '0.train': \"colon_009\""), std::string::npos);
  Put("splits_final.json", R"([{"train": ["colon_001"], "val": ["colon_001"]}])");
  EXPECT_NE(Error().find("listed twice in one fold"), std::string::npos);
  fs::remove(folder_ / "splits_final.json");
  fs::remove(folder_ / "labelsTr/colon_002.nii.gz");
  EXPECT_NE(Error().find("labelsTr/colon_002.nii.gz': no such file"), std::string::npos);
}

}  // namespace
}  // namespace patchbay::cli

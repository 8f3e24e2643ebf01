// Segmentations imported onto volumes: the voxels that a class loses, borders and ties of the
// grids, and a lock's numbers as those of the revision that it pins.
#include <array>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/plan/class_histograms.h"
#include "runtime/model/plan/value_statistics.h"
#include "runtime/os/file.h"
#include "tests/contract/known_ops.h"
#include "tests/workers/jobs/ingest/small_ingest.h"
#include "workers/jobs/plan/statistics.h"
#include "workers/jobs/synth/synth.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;

constexpr Extent kSize{6, 20, 28};
constexpr double kPixelMm = 0.78125;

class VolumeLabels : public SmallIngest {
 protected:
  void SetUp() override {
    SmallIngest::SetUp();
    SynthCtOptions options;
    options.size = kSize;
    ASSERT_TRUE(SynthCt(Folders::OfThisUser(), Path("ct"), options).ok());
    settings_["volume_chunk"] = 32;
    JobRunner ingest(Manifest({"ct"}), 1);
    ingest.Submit("ingest.plan", settings_);
    ingest.Run();
    ASSERT_THAT(ingest.Failures(), testing::IsEmpty());
    for (const std::string& name : Below(out_)) {
      if (name.ends_with(".zarr")) store_ = out_ + "/" + name;
    }
    const auto text = ReadFile(Folders::OfThisUser(), store_ + "/zarr.json", 1u << 24);
    ASSERT_TRUE(text.ok()) << text.status();
    const Json root = *ParseJson(*text, "store");
    for (std::size_t i = 0; i < 3; ++i) {
      origin_[i] = root["attributes"]["patchbay"]["affine_lps"][i][3].get<double>();
    }
  }

  /// A mask whose voxels are `x_mm` wide and whose first one lies `shift_mm` along x from the
  /// image's.
  std::string Mask(const Extent& size, double x_mm, double shift_mm,
                   const std::map<std::size_t, char>& voxels) const {
    std::string bytes(static_cast<std::size_t>(size.Pixels()), '\0');
    for (const auto& [at, value] : voxels) bytes[at] = value;
    const std::string text =
        StrCat("ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n",
               "CompressedData = False\nTransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = ",
               origin_[0] + shift_mm, " ", origin_[1], " ", origin_[2], "\nElementSpacing = ", x_mm,
               " ", kPixelMm, " 2.5\nDimSize = ", size.x, " ", size.y, " ", size.z,
               "\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n", bytes);
    EXPECT_TRUE(ReplaceFile(Folders::OfThisUser(), Path("mask.mha"), AsBytes(text)).ok());
    return Path("mask.mha");
  }

  /// The report of an import, or the error.
  StatusOr<Json> Import(const std::string& file, const std::string& set, bool clip = false) const {
    const Json classes = {{"classes",
                           {{{"name", "background"}, {"value", 0}},
                            {{"name", "tumour"}, {"value", 1}},
                            {{"name", "polyp"}, {"value", 2}}}},
                          {"exhaustive", true},
                          {"background", "background"}};
    JobRunner job(JsonOf(JobManifest{.label_rows = {{store_, file}}}), 1);
    job.Submit("labels.plan", {{"set", set},
                               {"classes", classes},
                               {"clip", clip},
                               {"dry_run", false},
                               {"origin", "auto"}});
    job.Run();
    if (!job.Failures().empty()) return job.Failures().front();
    return job.ResultOf("labels.import");
  }
  std::string Refused(const std::string& file) const {
    return std::string(MessageOf(Import(file, "set").status()));
  }

  std::string store_;
  std::array<double, 3> origin_{};
};

TEST_F(VolumeLabels, AClassOfWhichNoVoxelLiesOnTheImageIsRefusedWithoutClip) {
  const Extent fine{kSize.z, kSize.y, 2 * kSize.x};
  std::map<std::size_t, char> voxels = {{2001, '\1'}};  // between two voxels of the image
  for (std::size_t i = 3000; i < 3100; ++i) voxels[i] = '\2';
  const std::string file = Mask(fine, kPixelMm / 2, 0, voxels);
  EXPECT_THAT(Refused(file), HasSubstr("'tumour' loses 0 of 1 voxels outside the image and has "
                                       "none on it"));
  const auto report = Import(file, "clipped", true);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ((*report)["classes"][1]["voxels"], 0);
  EXPECT_EQ((*report)["classes"][1]["drawn_voxels"], 1);
  EXPECT_EQ((*report)["classes"][2]["voxels"], 50);
}

TEST_F(VolumeLabels, AHundredthOfAClassMayLieOutsideAndNoMore) {
  const auto shifted = [&](std::size_t outside) {
    std::map<std::size_t, char> voxels;
    const auto width = static_cast<std::size_t>(kSize.x);
    for (std::size_t i = 0; voxels.size() < 100 - outside; ++i) {
      if (i % width != width - 1) voxels[i] = '\1';
    }
    for (std::size_t i = 0; i < outside; ++i) voxels[(30 + i) * width - 1] = '\1';
    return Mask(kSize, kPixelMm, kPixelMm, voxels);
  };
  EXPECT_EQ(Refused(shifted(1)), "");
  EXPECT_THAT(Refused(shifted(2)), HasSubstr("'tumour' loses 2 of 100 voxels outside the image:"));
}

TEST_F(VolumeLabels, TheNearBorderOfAMaskIsItsOwnAndTheFarOneIsNot) {
  const auto covered = [&](std::int64_t width, double shift_mm) {
    std::map<std::size_t, char> voxels;
    for (std::size_t x = 8; x < 20; ++x) voxels[x] = '\1';
    const auto report = Import(Mask({kSize.z, kSize.y, width}, 0.5, shift_mm, voxels), "set", true);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? (*report)["covered_voxels"].get<std::int64_t>() : -1;
  };
  const std::int64_t column = kSize.z * kSize.y;
  EXPECT_EQ(covered(44, 0.25), kSize.x * column) << "the first lies half a voxel before the mask";
  EXPECT_EQ(covered(22, 1.75), 14 * column) << "voxel 16 lies half a voxel behind the mask's last";
}

TEST_F(VolumeLabels, OfTwoValuesOfOneWeightTheSmallerIsTaken) {
  for (const bool smaller_first : {true, false}) {
    std::map<std::size_t, char> voxels;  // the image's first column lies between these two
    for (std::size_t y = 0; y < static_cast<std::size_t>(kSize.y); ++y) {
      voxels[60 * y] = smaller_first ? '\1' : '\2';
      voxels[60 * y + 1] = smaller_first ? '\2' : '\1';
    }
    const auto report = Import(Mask({kSize.z, kSize.y, 60}, 0.5, -0.25, voxels), "set", true);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ((*report)["classes"][1]["voxels"], kSize.y);
    EXPECT_EQ((*report)["classes"][2]["voxels"], 0);
  }
}

/// The sums of a lock over the store, by one of its sets.
class LockedForeground : public VolumeLabels {
 protected:
  void SetUp() override {
    VolumeLabels::SetUp();
    for (const auto& [set, count] : {std::pair{"areas", 40u}, std::pair{"zones", 90u}}) {
      std::map<std::size_t, char> voxels;
      for (std::size_t i = 1000; i < 1000 + count; ++i) voxels[i] = '\1';
      const auto report = Import(Mask(kSize, kPixelMm, 0, voxels), set);
      ASSERT_TRUE(report.ok()) << report.status();
      locked_.sets[set] = Digest::FromHex((*report)["digest"].get<std::string>()).value();
    }
    locked_.path = store_;
    locked_.modality = *ParseModality("CT");
    context_.rights = PathRights::All();
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
    context_.signals = &signals_;
  }
  StatusOr<Json> Sum(const std::string& set) {
    const auto config = plan::ParseRunConfig(
        StrCat("dataset: x\npatch: {size: [4, 8, 8]}\nbatch: {global_size: 4}\nlabels: {set: ", set,
               "}\npreprocess: [ct_normalize: {}]\n"),
        "test");
    if (!config.ok()) return config.status();
    PB_ASSIGN_OR_RETURN(const Json sums, SumStatistics(context_, *config, {locked_}));
    return sums.at(std::string(plan::kCtForeground));
  }
  std::string FolderOf(const std::string& set) const {
    return StrCat(store_, "/labels/", zarr::RevisionName(set, locked_.sets.at(set)));
  }

  TrainingImage locked_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(LockedForeground, IsThatOfTheSetThatTheRunNames) {
  for (const auto& [set, count] : {std::pair{"areas", 40}, std::pair{"zones", 90}}) {
    const auto sum = Sum(set);
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ((*sum)["voxels"], count);
  }
}

TEST_F(LockedForeground, ARevisionInPlaceOfAnotherIsRefused) {
  std::filesystem::remove_all(FolderOf("areas"));
  std::filesystem::rename(FolderOf("zones"), FolderOf("areas"));
  const Status refused = Sum("areas").status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(MessageOf(refused)), HasSubstr("recorded, not"));
  const auto report = zarr::VerifyStore(Folders::OfThisUser(), store_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->bad, testing::Contains(HasSubstr("not this revision")));
}

TEST_F(LockedForeground, HistogramsOfAnotherRevisionAreRefused) {
  const std::string file = StrCat("/", plan::kClassHistogramsFile);
  ASSERT_TRUE(std::filesystem::exists(FolderOf("areas") + file));
  std::filesystem::copy_file(FolderOf("zones") + file, FolderOf("areas") + file,
                             std::filesystem::copy_options::overwrite_existing);
  const Status refused = Sum("areas").status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(MessageOf(refused)), HasSubstr("not the file that the set names"));
}

}  // namespace
}  // namespace patchbay::workers

// Opening and reading a file of any content ends soon, with pixels or with a status.
#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/tiff_source.h"

namespace patchbay::workers {
namespace {

std::vector<std::string> FilesUnder(const std::string& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Opens and reads a few places of every level.
/// @return the first failure.
Status ReadAround(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const auto image, OpenImage(Folders::OfThisUser(), path));
  PatchReader reader(*image);
  const auto& levels = image->layout().levels;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    for (const Box& box :
         {Box2D(-8, -8, 64, 64), Box2D(levels[i].size.y - 40, levels[i].size.x - 40, 64, 64),
          Box2D(levels[i].size.y / 2, levels[i].size.x / 2, 96, 96)}) {
      const auto pixels = reader.Read(static_cast<int>(i), box, 255);
      if (!pixels.ok()) return pixels.status();
    }
  }
  return absl::OkStatus();
}

bool IsAnAnswer(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      return !MessageOf(status).empty() || status.ok();
    default:
      return false;
  }
}

TEST(HostileSlides, EveryFileGetsAnAnswer) {
  std::vector<std::string> files = FilesUnder(TestDataFolder() + "/hostile/tiff");
  for (auto& file : FilesUnder(TestDataFolder() + "/hostile/svs")) files.push_back(file);
  for (auto& file : FilesUnder(TestDataFolder() + "/hostile/dicom")) files.push_back(file);
  if (files.empty()) GTEST_SKIP() << "the hostile files are not at PATCHBAY_TEST_DATA";
  int refused = 0;
  for (const std::string& file : files) {
    const Status status = ReadAround(file);
    EXPECT_TRUE(IsAnAnswer(status)) << file << ": " << Describe(status);
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 60) << "of " << files.size();
}

TEST(HostileSlides, KindsWeDoNotReadAreRefusedByName) {
  if (TestDataFolder().empty())
    GTEST_SKIP() << "the third-party slides are not at PATCHBAY_TEST_DATA";
  const auto refusal = [](const std::string& name) {
    return OpenImage(Folders::OfThisUser(), TestDataFolder() + name).status();
  };
  EXPECT_EQ(refusal("/ct/single/CT_small.dcm").code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Describe(refusal("/ct/single/CT_small.dcm")), testing::HasSubstr("DICOM"));
  EXPECT_EQ(refusal("/wsi/tiff-variants/viv-multi-channel.ome.tif").code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refusal("/wsi/tiff-variants/tiled-oversize-gray-i8.tif").code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refusal("/wsi/annotations/qupath-holed.geojson").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HostileSlides, PathsThatAreNoImageSayWhy) {
  TemporaryFolder folder;
  EXPECT_EQ(OpenImage(Folders::OfThisUser(), folder.File("missing.svs")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenImage(Folders::OfThisUser(), folder.path()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenImage(Folders::OfThisUser(), "/dev/null").status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), folder.File("empty.svs"), {}).ok());
  EXPECT_EQ(OpenImage(Folders::OfThisUser(), folder.File("empty.svs")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HostileSlides, SlideCutAnywhereIsRefusedOrDataLoss) {
  const std::string slide = TestDataFolder() + "/wsi/CMU-1-Small-Region.svs";
  if (!std::filesystem::exists(slide))
    GTEST_SKIP() << "the third-party slides are not at PATCHBAY_TEST_DATA";
  const auto whole = ReadFile(Folders::OfThisUser(), slide, 16 << 20);
  ASSERT_TRUE(whole.ok());
  TemporaryFolder folder;
  const std::string path = folder.File("cut.svs");
  for (std::size_t cut = 0; cut < whole->size(); cut += 1 + whole->size() / 97) {
    std::ofstream(path, std::ios::binary).write(whole->data(), static_cast<std::streamsize>(cut));
    const auto image = OpenImage(Folders::OfThisUser(), path);
    if (!image.ok()) {
      EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument) << "cut at " << cut;
      continue;
    }
    PatchReader reader(**image);
    const auto pixels = reader.Read(0, Box2D(0, 0, 2967, 2220), 255);
    ASSERT_FALSE(pixels.ok()) << "cut at " << cut;
    EXPECT_EQ(pixels.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Describe(pixels.status()), testing::HasSubstr("level 0 row"));
  }
}

}  // namespace
}  // namespace patchbay::workers

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/format/zarr/inspect.h"
#include "runtime/format/zarr/verify.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/jobs/synth/abdomen.h"
#include "workers/jobs/synth/synth.h"

namespace patchbay::workers {
namespace {

SynthVolumeOptions SmallVolume() { return {{20, 70, 130}, 5}; }

TEST(SynthVolume, IsTheFieldItShowsWithAPyramidAndVerifiesClean) {
  TemporaryFolder folder;
  const std::string path = folder.File("v.ome.zarr");
  ASSERT_TRUE(SynthVolume(Folders::OfThisUser(), path, SmallVolume()).ok());
  const auto image = OpenImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const ImageLayout& layout = (*image)->layout();
  EXPECT_EQ(layout.dtype, DType::kInt16);
  ASSERT_EQ(layout.levels.size(), 3u);
  EXPECT_EQ(layout.levels[0].size, SmallVolume().size);
  EXPECT_EQ(layout.levels[2].size, Extent(5, 18, 33));
  EXPECT_EQ(layout.spacing.z, (AxisSpacing{2.5, LengthUnit::kMillimeter}));
  EncodedPatch patch;
  const Extent size = SmallVolume().size;
  ASSERT_TRUE((*image)->Fetch(0, WholeOf(size), patch).ok());
  std::vector<std::int16_t> voxels(static_cast<std::size_t>(size.Pixels()));
  const auto view = ContiguousView<4>(reinterpret_cast<std::byte*>(voxels.data()), DType::kInt16,
                                      {size.z, size.y, size.x, 1});
  ASSERT_TRUE((*image)->Decode(patch, view, 0, *(*image)->MakeScratch()).ok());
  const AbdomenField field(size, SmallVolume().seed);
  for (std::int64_t i = 0; i < size.Pixels(); ++i) {
    ASSERT_EQ(voxels[static_cast<std::size_t>(i)], field.At(CellAt(size, i)));
  }
  const auto report = zarr::VerifyStore(Folders::OfThisUser(), path);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->Clean()) << testing::PrintToString(report->bad);
}

TEST(SynthVolume, SameSeedSameBytesAnotherSeedAnotherVolume) {
  TemporaryFolder folder;
  SynthVolumeOptions options = SmallVolume();
  const auto digest = [&](const char* name) {
    EXPECT_TRUE(SynthVolume(Folders::OfThisUser(), folder.File(name), options).ok());
    return zarr::InspectStore(Folders::OfThisUser(), folder.File(name))->digest;
  };
  const auto first = digest("a");
  EXPECT_EQ(digest("b"), first);
  options.seed = 6;
  EXPECT_NE(digest("c"), first);
}

TEST(SynthVolume, LeavesNothingWhenCancelledAndReplacesNothing) {
  TemporaryFolder folder;
  const std::string path = folder.File("v.ome.zarr");
  EXPECT_TRUE(absl::IsCancelled(
      SynthVolume(Folders::OfThisUser(), path, SmallVolume(), [](double) { return false; })));
  const std::string parent = std::filesystem::path(path).parent_path().string();
  EXPECT_TRUE(std::filesystem::is_empty(parent));
  std::filesystem::create_directory(path);
  EXPECT_TRUE(absl::IsAlreadyExists(SynthVolume(Folders::OfThisUser(), path, SmallVolume())));
}

TEST(SynthVolume, OptionsOutOfRangeAreRefused) {
  const auto error = [](const char* json) {
    return std::string(
        MessageOf(ReadPayload<SynthVolumeOptions>(*ParseJson(json, "t"), "synth.volume").status()));
  };
  EXPECT_EQ(error(R"({"size": [8, 16, 16], "seed": 2})"), "");
  EXPECT_THAT(error(R"({"size": [0, 16, 16]})"), testing::HasSubstr("each in 1..4096"));
  EXPECT_THAT(error(R"({"size": [4096, 4096, 4096]})"), testing::HasSubstr("more than 2147483648"));
  EXPECT_THAT(error(R"({"size": [16, 16]})"), testing::HasSubstr("size: expected ZxYxX"));
  EXPECT_THAT(error(R"({"slices": 3})"), testing::HasSubstr("'slices'"));
}

}  // namespace
}  // namespace patchbay::workers

#include "runtime/zarr/label_writer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "runtime/base/random.h"
#include "runtime/zarr/mode_downsample.h"
#include "runtime/zarr/verify.h"

namespace patchbay::zarr {
namespace {

/// The commonest of a pixel's block, of several the smallest.
std::uint8_t ModeOfBlock(const std::vector<std::uint8_t>& fine, const Extent& size,
                         const std::array<std::int64_t, 4>& block) {
  std::array<int, 256> counts{};
  for (std::int64_t y = block[0]; y < std::min(size.y, block[1]); ++y) {
    for (std::int64_t x = block[2]; x < std::min(size.x, block[3]); ++x) {
      ++counts[fine[static_cast<std::size_t>(y * size.x + x)]];
    }
  }
  return static_cast<std::uint8_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

std::vector<std::uint8_t> Noise(std::int64_t count, int values) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const PhiloxBlock block = Draw(DrawKey{.seed = 3, .ordinal = i}, 0);
    out[i] = static_cast<std::uint8_t>(block.word[0] % static_cast<std::uint32_t>(values));
  }
  return out;
}

TEST(DownsampleByMode, GivesTheCommonestValueOfWholeBlocks) {
  for (const auto& [fine, coarse, factor] :
       std::vector<std::tuple<Extent, Extent, std::int64_t>>{{Flat(37, 51), Flat(19, 26), 2},
                                                             {Flat(37, 51), Flat(18, 25), 2},
                                                             {Flat(38, 50), Flat(18, 25), 2},
                                                             {Flat(41, 67), Flat(10, 16), 4}}) {
    const auto pixels = Noise(fine.Pixels(), 3);
    std::vector<std::uint8_t> out(static_cast<std::size_t>(coarse.Pixels()));
    DownsampleByMode({pixels.data(), WholeOf(fine)},
                     {Footprint(fine.y, coarse.y), Footprint(fine.x, coarse.x)},
                     {out.data(), WholeOf(coarse), coarse.x});
    for (std::int64_t y = 0; y < coarse.y; ++y) {
      for (std::int64_t x = 0; x < coarse.x; ++x) {
        ASSERT_EQ(
            out[static_cast<std::size_t>(y * coarse.x + x)],
            ModeOfBlock(pixels, fine, {y * factor, (y + 1) * factor, x * factor, (x + 1) * factor}))
            << y << ", " << x;
      }
    }
  }
}

TEST(LabelWriter, StoresVerifyAndCountTheirPixels) {
  const std::string folder = testing::TempDir() + "/label_writer";
  std::filesystem::remove_all(folder);
  const std::vector<Extent> levels = {Flat(4700, 5100), Flat(2350, 2550), Flat(587, 637)};
  const auto chunk = [&](const Point& at,
                         std::uint8_t* out) -> StatusOr<std::optional<std::uint8_t>> {
    if (at.y == 0) return std::optional<std::uint8_t>(kIgnoreLabel);
    if (at.x != 3) return std::optional<std::uint8_t>(static_cast<std::uint8_t>(at.y % 3));
    for (int i = 0; i < 512 * 512; ++i) out[i] = static_cast<std::uint8_t>(i / 100 % 5);
    return std::optional<std::uint8_t>();
  };
  const auto go_on = [] { return absl::OkStatus(); };
  const auto shards =
      WriteLabelShards(folder, levels, chunk, [](auto, const auto&) { return absl::OkStatus(); });
  ASSERT_TRUE(shards.ok()) << shards.status();
  const auto counted = CountLabels(levels[0], chunk, go_on);
  ASSERT_TRUE(counted.ok());
  EXPECT_EQ(*counted, shards->pixels);
  EXPECT_EQ(shards->pixels[kIgnoreLabel], 512u * 5100u);
  ImageStoreSpec spec;
  spec.settings = LabelSettings();
  spec.levels = levels;
  spec.image_label = {{"source", {{"image", "../../"}}}};
  const auto roots = CombineRoots(spec, shards->records);
  ASSERT_TRUE(roots.ok()) << roots.status();
  ASSERT_TRUE(WriteStoreMetadata(folder, spec, *roots).ok());
  const auto report = VerifyStore(folder);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->Clean()) << (report->bad.empty() ? "" : report->bad[0]);
}

}  // namespace
}  // namespace patchbay::zarr

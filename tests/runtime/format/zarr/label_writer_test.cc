#include "runtime/format/zarr/label_writer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "runtime/core/random.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/os/file.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

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
                                                             {Flat(38, 260), Flat(19, 130), 2},
                                                             {Flat(37, 51), Flat(18, 25), 2},
                                                             {Flat(38, 50), Flat(18, 25), 2},
                                                             {Flat(38, 151), Flat(19, 75), 2},
                                                             {Flat(41, 67), Flat(10, 16), 4}}) {
    const auto pixels = Noise(fine.Pixels(), 3 + static_cast<int>(fine.x % 2) * 253);
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

TEST(HalveLabels, AVoxelIsTheCommonestOfThoseBelowItWhateverTheSides) {
  const Extent size{3, 5, 7}, half{2, 3, 4};
  std::vector<std::byte> fine, coarse(static_cast<std::size_t>(half.Pixels()));
  for (const std::uint8_t value : Noise(size.Pixels(), 3)) {
    fine.push_back(static_cast<std::byte>(value));
  }
  const TensorView out =
      ContiguousView<4>(coarse.data(), DType::kUint8, {half.z, half.y, half.x, std::int64_t{1}});
  const TensorView in =
      ContiguousView<4>(fine.data(), DType::kUint8, {size.z, size.y, size.x, std::int64_t{1}});
  ASSERT_TRUE(HalveLabels(ConstTensorView(in), out).ok());
  for (std::int64_t i = 0; i < half.Pixels(); ++i) {
    const std::int64_t z = i / (half.y * half.x), y = i / half.x % half.y, x = i % half.x;
    std::map<std::byte, int> counts;
    for (std::int64_t pz = 2 * z; pz < std::min(size.z, 2 * z + 2); ++pz) {
      for (std::int64_t py = 2 * y; py < std::min(size.y, 2 * y + 2); ++py) {
        for (std::int64_t px = 2 * x; px < std::min(size.x, 2 * x + 2); ++px) {
          ++counts[fine[static_cast<std::size_t>((pz * size.y + py) * size.x + px)]];
        }
      }
    }
    const auto most = std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) {
      return a.second < b.second;  // the first of several is the smallest
    });
    ASSERT_EQ(coarse[static_cast<std::size_t>(i)], most->first) << z << ", " << y << ", " << x;
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
  const auto shards = WriteLabelShards(Folders::OfThisUser(), folder, levels, chunk,
                                       [](auto, const auto&) { return absl::OkStatus(); });
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
  ASSERT_TRUE(WriteStoreMetadata(Folders::OfThisUser(), folder, spec, *roots).ok());
  const auto report = VerifyStore(Folders::OfThisUser(), folder);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->Clean()) << (report->bad.empty() ? "" : report->bad[0]);
}

TEST(LabelWriter, AnErrorOfAChunkOrOfARowEndsTheWork) {
  const std::string folder = testing::TempDir() + "/label_errors";
  const std::vector<Extent> levels = {Flat(2100, 2100), Flat(1050, 1050)};
  for (const bool of_chunk : {true, false}) {
    std::filesystem::remove_all(folder);
    const auto chunk = [&](const Point& at,
                           std::uint8_t* out) -> StatusOr<std::optional<std::uint8_t>> {
      if (of_chunk && at.y == 2 && at.x == 3) return DataLoss("a damaged chunk");
      for (int i = 0; i < 512 * 512; ++i) out[i] = static_cast<std::uint8_t>(i % 3);
      return std::optional<std::uint8_t>();
    };
    const auto row = [&](std::int64_t index, const auto&) {
      return !of_chunk && index == 2 ? DataLoss("a damaged row") : absl::OkStatus();
    };
    const Status ended =
        WriteLabelShards(Folders::OfThisUser(), folder, levels, chunk, row).status();
    EXPECT_EQ(MessageOf(ended), of_chunk ? "a damaged chunk" : "a damaged row");
  }
}

/// Every file of a store of one level whose chunks are noise, with `beyond` outside the image.
std::map<std::string, std::string> FilesOf(const Extent& size, std::uint8_t beyond) {
  const std::string folder = testing::TempDir() + "/label_borders";
  std::filesystem::remove_all(folder);
  static const auto noise = Noise(512 * 512, 7);
  const auto chunk = [&](const Point& at,
                         std::uint8_t* out) -> StatusOr<std::optional<std::uint8_t>> {
    for (std::int64_t i = 0; i < 512 * 512; ++i) {
      const bool inside = at.y * 512 + i / 512 < size.y && at.x * 512 + i % 512 < size.x;
      out[i] = inside ? noise[static_cast<std::size_t>(i)] : beyond;
    }
    return std::optional<std::uint8_t>();
  };
  const auto shards = WriteLabelShards(Folders::OfThisUser(), folder, std::vector{size}, chunk,
                                       [](auto, const auto&) { return absl::OkStatus(); });
  EXPECT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(std::accumulate(shards->pixels.begin(), shards->pixels.end(), std::uint64_t{0}),
            static_cast<std::uint64_t>(size.Pixels()));
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[entry.path().string()] =
          ReadFile(Folders::OfThisUser(), entry.path(), 1u << 24).value();
  }
  return files;
}

TEST(LabelWriter, BytesDoNotDependOnWhatLiesBesideAChunkCutOnOneSide) {
  for (const Extent& size : {Flat(512, 700), Flat(700, 512), Flat(1, 512)}) {
    const auto files = FilesOf(size, 1);
    EXPECT_FALSE(files.empty());
    EXPECT_EQ(files, FilesOf(size, 200)) << size.ToString();
  }
}

/// The pixels of a level of a store of several, each the mode of the one below.
std::vector<std::uint8_t> PixelsOfLevel(const std::string& folder, std::size_t level) {
  const auto array = Array::Open(Folders::OfThisUser(), StrCat(folder, "/", level));
  EXPECT_TRUE(array.ok()) << array.status();
  const auto bytes = ReadAll(*array);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  std::vector<std::uint8_t> pixels(bytes->size());
  std::memcpy(pixels.data(), bytes->data(), pixels.size());
  return pixels;
}

TEST(LabelWriter, ALevelIsTheModeOfTheOneBelowWhateverItsSides) {
  const std::string folder = testing::TempDir() + "/label_sides";
  for (const std::vector<Extent>& levels :
       {std::vector{Flat(1200, 600), Flat(600, 300), Flat(300, 150)},
        std::vector{Flat(600, 1200), Flat(300, 600)},
        std::vector{Flat(1101, 603), Flat(551, 302), Flat(275, 151)},
        std::vector{Flat(1026, 2050), Flat(512, 1024), Flat(256, 512)}}) {
    std::filesystem::remove_all(folder);
    auto pixels = Noise(levels[0].Pixels(), 3);
    // One chunk of one value among the others.
    for (std::int64_t y = 512; y < std::min<std::int64_t>(levels[0].y, 1024); ++y) {
      std::memset(pixels.data() + y * levels[0].x, 2, 512);
    }
    const auto chunk = [&](const Point& at,
                           std::uint8_t* out) -> StatusOr<std::optional<std::uint8_t>> {
      const Box part = Intersect(Box2D(at.y * 512, at.x * 512, 512, 512), WholeOf(levels[0]));
      for (std::int64_t y = 0; y < part.height; ++y) {
        std::memcpy(out + y * 512, pixels.data() + (part.y + y) * levels[0].x + part.x,
                    static_cast<std::size_t>(part.width));
      }
      return std::optional<std::uint8_t>();
    };
    ImageStoreSpec spec;
    spec.settings = LabelSettings();
    spec.levels = levels;
    spec.image_label = {{"source", {{"image", "../../"}}}};
    const auto shards = WriteLabelShards(Folders::OfThisUser(), folder, levels, chunk,
                                         [](auto, const auto&) { return absl::OkStatus(); });
    ASSERT_TRUE(shards.ok()) << shards.status();
    ASSERT_TRUE(WriteStoreMetadata(Folders::OfThisUser(), folder, spec,
                                   *CombineRoots(spec, shards->records))
                    .ok());
    ASSERT_EQ(PixelsOfLevel(folder, 0), pixels);
    for (std::size_t l = 1; l < levels.size(); ++l) {
      const Extent &fine = levels[l - 1], &coarse = levels[l];
      const auto below = PixelsOfLevel(folder, l - 1);
      std::vector<std::uint8_t> expected(static_cast<std::size_t>(coarse.Pixels()));
      DownsampleByMode({below.data(), WholeOf(fine)},
                       {Footprint(fine.y, coarse.y), Footprint(fine.x, coarse.x)},
                       {expected.data(), WholeOf(coarse), coarse.x});
      EXPECT_EQ(PixelsOfLevel(folder, l), expected) << levels[0].ToString() << " level " << l;
    }
  }
}

TEST(LabelWriter, LevelsOfDifferentLayoutsAreNoStore) {
  const std::string folder = testing::TempDir() + "/label_layouts";
  std::filesystem::remove_all(folder);
  ImageStoreSpec spec;
  spec.settings = LabelSettings();
  spec.levels = {Flat(600, 700), Flat(300, 350)};
  spec.image_label = {{"source", {{"image", "../../"}}}};
  const auto shards = WriteLabelShards(
      Folders::OfThisUser(), folder, spec.levels,
      [](const Point&, std::uint8_t*) -> StatusOr<std::optional<std::uint8_t>> {
        return std::optional<std::uint8_t>(1);
      },
      [](auto, const auto&) { return absl::OkStatus(); });
  ASSERT_TRUE(shards.ok()) << shards.status();
  const auto roots = CombineRoots(spec, shards->records);
  ASSERT_TRUE(roots.ok()) << roots.status();
  ASSERT_TRUE(WriteStoreMetadata(Folders::OfThisUser(), folder, spec, *roots).ok());
  ASSERT_TRUE(VerifyStore(Folders::OfThisUser(), folder)->Clean());
  const std::string file = folder + "/1/zarr.json";
  const Json level =
      ParseJson(ReadFile(Folders::OfThisUser(), file, 1u << 20).value(), "level").value();
  const auto refusal = [&](const std::function<void(Json&)>& change) {
    Json changed = level;
    change(changed);
    std::ofstream(file) << DumpJson(changed);
    return std::string(MessageOf(VerifyStore(Folders::OfThisUser(), folder).status()));
  };
  const auto sharded = [](Json& json) -> Json& { return json["codecs"][0]["configuration"]; };
  const auto grid = [](Json& json) -> Json& { return json["chunk_grid"]["configuration"]; };
  for (const auto& refused : {
           refusal([&](Json& json) {
             grid(json)["chunk_shape"] = {1, 2048, 4096};
           }),
           refusal([&](Json& json) {
             grid(json)["chunk_shape"] = {1, 4096, 2048};
           }),
           refusal([&](Json& json) {
             sharded(json)["chunk_shape"] = {1, 256, 512};
           }),
           refusal([&](Json& json) {
             sharded(json)["chunk_shape"] = {1, 512, 256};
           }),
       }) {
    EXPECT_NE(refused.find("levels of different layouts"), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace patchbay::zarr

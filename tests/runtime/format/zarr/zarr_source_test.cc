// An NGFF store as an image source: boxes anywhere, both metadata versions, planar and interleaved.
#include "workers/sources/zarr_source.h"

#include <set>

#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::workers {
namespace {

using zarr::ImageStoreSpec;
using zarr::MakeImage;
using zarr::Mix;
using zarr::TempFolder;
using zarr::TestImage;

/// Pixels of a box of the image, `fill` outside.
std::vector<std::byte> Expected(const TestImage& image, const Box& box, std::uint8_t fill) {
  std::vector<std::byte> out;
  for (std::int64_t y = box.y; y < box.y + box.height; ++y) {
    for (std::int64_t x = box.x; x < box.x + box.width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const bool inside = y >= 0 && x >= 0 && y < image.height && x < image.width;
        out.push_back(
            inside
                ? image.bytes[static_cast<std::size_t>((y * image.width + x) * image.channels + c)]
                : static_cast<std::byte>(fill));
      }
    }
  }
  return out;
}

struct SourceCase {
  zarr::StoreCodec codec;
  std::uint32_t block_bytes;
};

class ZarrImageBoxes : public testing::TestWithParam<SourceCase> {};

TEST_P(ZarrImageBoxes, AnyBoxGivesThePixelsOfTheImageAndFillOutside) {
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings.codec = GetParam().codec;
  spec.settings.blosc_block_bytes = GetParam().block_bytes;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(128, 128);
  spec.levels = {Flat(301, 270), Flat(151, 135)};
  spec.spacing = SpacingOfMpp(0.5, 0.25);
  std::vector<TestImage> images = {MakeImage(DType::kUint8, 301, 270, 3, 1),
                                   MakeImage(DType::kUint8, 151, 135, 3, 2)};
  WriteStore(folder / "s", spec, images);
  const auto image = OpenZarrImage(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(image.ok()) << image.status();
  const ImageLayout& layout = (*image)->layout();
  EXPECT_EQ(layout.kind, "zarr");
  EXPECT_EQ(layout.channels, 3);
  EXPECT_EQ(layout.levels[1].chunk, Flat(64, 64));
  EXPECT_NEAR(layout.levels[1].downsample, 2, 0.01);
  EXPECT_EQ(layout.spacing, SpacingOfMpp(0.5, 0.25));
  const auto scratch = (*image)->MakeScratch();
  EncodedPatch patch;
  std::uint64_t seed = 42;
  for (int round = 0; round < 300; ++round) {
    const int level = static_cast<int>(Mix(++seed) % 2);
    const auto draw = [&seed](std::uint64_t below) {
      return static_cast<std::int64_t>(Mix(++seed) % below);
    };
    const std::int64_t y = draw(400) - 60, x = draw(400) - 60;
    const std::int64_t height = 1 + draw(130), width = 1 + draw(130);
    Box box = Box2D(y, x, height, width);
    if (round % 5 == 0) box = Box2D(64 * (round / 5 % 3), 64 * (round / 15 % 3), 64, 64);
    SCOPED_TRACE(testing::Message() << "level " << level << " box " << box.ToString());
    ASSERT_TRUE((*image)->Fetch(level, box, patch).ok());
    if (round % 5 == 0) ASSERT_EQ(patch.pieces.size(), 1u) << "a box that is a chunk";
    const auto expected = Expected(images[static_cast<std::size_t>(level)], box, 77);
    std::vector<std::byte> out(expected.size(), std::byte{0x11});
    const auto view = ContiguousView<3>(out.data(), DType::kUint8, {box.height, box.width, 3});
    ASSERT_TRUE((*image)->Decode(patch, view, 77, *scratch).ok());
    ASSERT_EQ(out, expected);
    // Planes in memory, as a channels-first slot has them.
    auto planes = view;
    planes.stride_bytes = {box.width, 1, box.height * box.width};
    ASSERT_TRUE((*image)->Decode(patch, planes, 77, *scratch).ok());
    for (std::int64_t i = 0; i < box.height * box.width; ++i) {
      for (std::int64_t c = 0; c < 3; ++c) {
        ASSERT_EQ(out[static_cast<std::size_t>(c * box.height * box.width + i)],
                  expected[static_cast<std::size_t>(i * 3 + c)]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, ZarrImageBoxes,
                         testing::Values(SourceCase{zarr::StoreCodec::kBloscZstd, 131072},
                                         SourceCase{zarr::StoreCodec::kBloscZstd, 4096},
                                         SourceCase{zarr::StoreCodec::kBloscLz4, 4096},
                                         SourceCase{zarr::StoreCodec::kZstd, 131072}));

TEST(ZarrImage, RefusesBoxesLevelsAndViewsThatDoNotFit) {
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(64, 64);
  spec.levels = {Flat(64, 64)};
  WriteStore(folder / "s", spec, {MakeImage(DType::kUint8, 64, 64, 3, 1)});
  const auto image = OpenZarrImage(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(image.ok());
  EncodedPatch patch;
  EXPECT_TRUE(absl::IsInvalidArgument((*image)->Fetch(1, Box2D(0, 0, 8, 8), patch)));
  EXPECT_TRUE(absl::IsInvalidArgument((*image)->Fetch(-1, Box2D(0, 0, 8, 8), patch)));
  EXPECT_TRUE(absl::IsInvalidArgument((*image)->Fetch(0, Box{0, 0, 0, -1, 8, 8}, patch)));
  EXPECT_TRUE(
      absl::IsInvalidArgument((*image)->Fetch(0, Box2D(std::int64_t{1} << 62, 0, 8, 8), patch)));
  ASSERT_TRUE((*image)->Fetch(0, Box2D(0, 0, 8, 8), patch).ok());
  std::vector<std::byte> out(1000);
  const auto scratch = (*image)->MakeScratch();
  EXPECT_TRUE(absl::IsInvalidArgument((*image)->Decode(
      patch, ContiguousView<3>(out.data(), DType::kUint8, {8, 9, 3}), 0, *scratch)));
  EXPECT_TRUE(absl::IsInvalidArgument((*image)->Decode(
      patch, ContiguousView<3>(out.data(), DType::kUint8, {8, 8, 3}), 256, *scratch)));
  patch.pieces.clear();
  EXPECT_TRUE(absl::IsInvalidArgument((*image)->Decode(
      patch, ContiguousView<3>(out.data(), DType::kUint8, {8, 8, 3}), 0, *scratch)));
}

TEST(ZarrImage, AnyBoxOfAVolumeGivesItsVoxelsAndFillOutside) {
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings = zarr::VolumeSettings(DType::kInt16);
  spec.settings.chunk = {8, 16, 32};
  spec.settings.shard = {32, 32, 64};
  const Extent size{45, 70, 90};
  spec.levels = {size};
  spec.spacing.z = AxisSpacing{2.5, LengthUnit::kMillimeter};
  spec.spacing.y = spec.spacing.x = AxisSpacing{0.75, LengthUnit::kMillimeter};
  const TestImage volume = zarr::MakeVolume<std::int16_t>(DType::kInt16, size, 3);
  WriteStore(folder / "v", spec, {volume});
  const auto image = OpenZarrImage(Folders::OfThisUser(), folder / "v");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ((*image)->layout().levels[0].size, size);
  EXPECT_EQ((*image)->layout().levels[0].chunk, spec.settings.chunk);
  EXPECT_EQ((*image)->layout().spacing, spec.spacing);
  EXPECT_EQ((*image)->layout().channels, 1);
  const auto* voxels = reinterpret_cast<const std::int16_t*>(volume.bytes.data());
  const auto scratch = (*image)->MakeScratch();
  EncodedPatch patch;
  std::uint64_t seed = 9;
  for (int round = 0; round < 60; ++round) {
    const auto draw = [&seed](std::uint64_t below) {
      return static_cast<std::int64_t>(Mix(++seed) % below);
    };
    const Box box = BoxAt({draw(70) - 15, draw(100) - 15, draw(120) - 15},
                          {1 + draw(40), 1 + draw(40), 1 + draw(50)});
    SCOPED_TRACE(box.ToString());
    ASSERT_TRUE((*image)->Fetch(0, box, patch).ok());
    std::vector<std::int16_t> out(static_cast<std::size_t>(box.Pixels()));
    const auto view = ContiguousView<4>(reinterpret_cast<std::byte*>(out.data()), DType::kInt16,
                                        {box.depth, box.height, box.width, 1});
    ASSERT_TRUE((*image)->Decode(patch, view, -777, *scratch).ok());
    for (std::int64_t i = 0; i < box.Pixels(); ++i) {
      const Point cell = CellAt(box.Shape(), i);
      const Point at{box.z + cell.z, box.y + cell.y, box.x + cell.x};
      const std::int16_t expected =
          at.Inside(size) ? voxels[IndexOf(size, at)] : static_cast<std::int16_t>(-777);
      ASSERT_EQ(out[static_cast<std::size_t>(i)], expected) << at.ToString();
    }
  }
}

/// A store of another writer (NGFF 0.4, not compressed) of axes c, z, y, x and int16: channel c of
/// voxel (z, y, x) is 1000 c + 100 z + 10 y + x. Chunks of `channels` channels.
void WriteChannels(const std::string& store, std::int64_t channels) {
  zarr::WriteText(store + "/.zgroup", R"({"zarr_format": 2})");
  zarr::WriteText(store + "/.zattrs",
                  R"({"multiscales": [{"version": "0.4", "axes": [{"name": "c", "type": "channel"},
            {"name": "z", "type": "space"}, {"name": "y", "type": "space"},
            {"name": "x", "type": "space"}],
          "datasets": [{"path": "0", "coordinateTransformations":
            [{"type": "scale", "scale": [1, 1, 1, 1]}]}]}],
          "omero": {"channels": [{"label": "t1"}, {"label": "t2"}, {"label": "ct"}]}})");
  zarr::WriteText(store + "/0/.zarray",
                  StrCat(R"({"zarr_format": 2, "shape": [3, 4, 6, 8], "chunks": [)", channels,
                         R"(, 2, 3, 8], "dtype": "<i2", "compressor": null, "fill_value": 0,
                             "order": "C", "filters": null, "dimension_separator": "."})"));
  for (std::int64_t c = 0; c < 3; c += channels) {
    for (std::int64_t z = 0; z < 4; z += 2) {
      for (std::int64_t y = 0; y < 6; y += 3) {
        std::string bytes;
        for (std::int64_t i = 0; i < channels * 2 * 3 * 8; ++i) {
          const std::int64_t own = c + i / 48, row = i / 8 % 3, slice = i / 24 % 2;
          const std::int64_t value =
              own < 3 ? 1000 * own + 100 * (z + slice) + 10 * (y + row) + i % 8 : 0;
          bytes.push_back(static_cast<char>(value & 0xFF));
          bytes.push_back(static_cast<char>(value >> 8));
        }
        zarr::WriteText(StrCat(store, "/0/", c / channels, ".", z / 2, ".", y / 3, ".0"), bytes);
      }
    }
  }
}

TEST(ZarrImage, ChannelsOfAVolumeAreReadInAnyOrderAndTheOthersAreNot) {
  for (const std::int64_t in_chunk : {1, 2, 3}) {
    SCOPED_TRACE(in_chunk);
    const TempFolder folder;
    WriteChannels(folder / "v", in_chunk);
    const auto image = OpenZarrImage(Folders::OfThisUser(), folder / "v");
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ((*image)->layout().channels, 3);
    EXPECT_THAT((*image)->layout().channel_names, testing::ElementsAre("t1", "t2", "ct"));
    EXPECT_TRUE((*image)->ReadsChosenChannels());
    const auto scratch = (*image)->MakeScratch();
    EncodedPatch patch;
    const Box box = BoxAt({1, 2, 3}, {3, 5, 7});  // reaches past the end along y and x
    for (const std::vector<int>& chosen :
         {std::vector<int>{}, {0}, {2}, {2, 0}, {1, 2, 0}, {1, 1}}) {
      patch.channels = chosen;
      ASSERT_TRUE((*image)->Fetch(0, box, patch).ok());
      const std::vector<int> wanted = chosen.empty() ? std::vector<int>{0, 1, 2} : chosen;
      std::set<std::int64_t> planes;
      for (const int c : wanted) planes.insert(c / in_chunk);
      EXPECT_EQ(patch.pieces.size(), planes.size() * 4) << "chunks of no other channel";
      std::vector<std::int16_t> out(wanted.size() * 105);
      const auto view = ContiguousView<4>(reinterpret_cast<std::byte*>(out.data()), DType::kInt16,
                                          {3, 5, 7, static_cast<std::int64_t>(wanted.size())});
      ASSERT_TRUE((*image)->Decode(patch, view, -7, *scratch).ok());
      for (std::size_t i = 0; i < out.size(); ++i) {
        const Point cell = CellAt({3, 5, 7}, static_cast<std::int64_t>(i / wanted.size()));
        const Point at{1 + cell.z, 2 + cell.y, 3 + cell.x};
        const auto value = 1000 * wanted[i % wanted.size()] + 100 * at.z + 10 * at.y + at.x;
        ASSERT_EQ(out[i], at.Inside({4, 6, 8}) ? value : -7) << at.ToString();
      }
    }
    patch.channels = {3};
    EXPECT_TRUE(absl::IsInvalidArgument((*image)->Fetch(0, box, patch)));
    patch.channels = {-1};
    EXPECT_TRUE(absl::IsInvalidArgument((*image)->Fetch(0, box, patch)));
  }
}

TEST(ZarrImage, OpensForeignStoresOfBothVersionsAndAxisOrders) {
  if (zarr::TestData().empty()) GTEST_SKIP() << "no test data";
  const std::string data = zarr::TestData() + "/zarr/ome/";
  for (const char* name : {"simple_0.4", "simple_0.5", "mni152_axial.ome.zarr"}) {
    const auto image = OpenZarrImage(Folders::OfThisUser(), data + name);
    ASSERT_TRUE(image.ok()) << name << ": " << image.status();
    const ImageLayout& layout = (*image)->layout();
    EncodedPatch patch;
    const LevelLayout& l = layout.levels[0];
    ASSERT_TRUE((*image)->Fetch(0, Box2D(0, 0, l.size.y, l.size.x), patch).ok());
    std::vector<std::byte> out(static_cast<std::size_t>(l.size.y * l.size.x) *
                               SizeOf(layout.dtype));
    const auto view =
        ContiguousView<3>(out.data(), layout.dtype, {l.size.y, l.size.x, layout.channels});
    const auto scratch = (*image)->MakeScratch();
    EXPECT_TRUE((*image)->Decode(patch, view, 0, *scratch).ok());
  }
  const auto image = OpenZarrImage(Folders::OfThisUser(), data + "simple_0.4");
  EXPECT_NEAR((*image)->layout().spacing.x->Micrometres(), 0.03, 1e-12);
  EXPECT_EQ((*image)->layout().levels.size(), 3u);
}

TEST(ZarrImage, RefusesAListOfShardsThatIsOfOtherLevels) {
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(128, 128);
  spec.levels = {Flat(300, 200), Flat(150, 100)};
  std::vector<TestImage> images;
  for (const Extent& l : spec.levels) images.push_back(MakeImage(DType::kUint8, l.y, l.x, 3, 5));
  const std::string store = folder / "s", root = store + "/zarr.json";
  zarr::WriteStore(store, spec, images);
  ASSERT_TRUE(OpenZarrImage(Folders::OfThisUser(), store).ok());
  const Json good = *ParseJson(zarr::ReadText(root), "root");
  for (const bool longer : {false, true}) {
    Json document = good;
    Json& list = document["attributes"]["patchbay"]["shards"];
    longer ? list.push_back(list[1]) : list.erase(1);
    zarr::WriteText(root, document.dump());
    const auto image = OpenZarrImage(Folders::OfThisUser(), store);
    EXPECT_TRUE(absl::IsDataLoss(image.status())) << image.status();
    EXPECT_NE(MessageOf(image.status()).find("not a list of 2 levels"), std::string_view::npos);
  }
}

TEST(ZarrImage, RefusesAFolderThatIsNoImage) {
  const TempFolder folder;
  EXPECT_FALSE(OpenZarrImage(Folders::OfThisUser(), folder.path()).ok());
  if (zarr::TestData().empty()) GTEST_SKIP() << "no test data";
  const std::string data = zarr::TestData() + "/zarr/";
  EXPECT_TRUE(absl::IsNotFound(
      OpenZarrImage(Folders::OfThisUser(), data + "zarrita-js/v3/data.zarr").status()));
  for (const auto& entry :
       std::filesystem::directory_iterator(data + "ome/ome-zarr-examples/invalid")) {
    const auto image = OpenZarrImage(Folders::OfThisUser(), entry.path().string());
    EXPECT_FALSE(image.ok()) << entry.path();
  }
}

}  // namespace
}  // namespace patchbay::workers

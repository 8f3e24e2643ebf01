// Chunks that are a slide's tiles: how the codec's metadata is read, and where its pixels go.
#include "runtime/format/zarr/codec/tile_codec.h"

#include <gtest/gtest.h>

#include "runtime/format/zarr/codec/codec_metadata.h"
#include "workers/sources/jpeg_encoder.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kHeight = 24, kWidth = 40;

Json Transpose() { return {{"name", "transpose"}, {"configuration", {{"order", {1, 2, 0}}}}}; }

ArrayMetadata Tiled(DType dtype = DType::kUint8, std::int64_t channels = 3) {
  ArrayMetadata array;
  array.dtype = dtype;
  array.shape = {channels, 100, 100};
  array.shard_shape = {channels, kHeight, kWidth};
  return array;
}

/// The chain of `codec` between a transpose and a checksum.
StatusOr<ArrayMetadata> Parse(const Json& codec, ArrayMetadata array = Tiled()) {
  PB_RETURN_IF_ERROR(ParseCodecsV3({Transpose(), codec, {{"name", "crc32c"}}}, "a", array));
  return array;
}

StatusOr<ArrayMetadata> Parse(std::string_view name, const Json& configuration,
                              ArrayMetadata array = Tiled()) {
  return Parse({{"name", name}, {"configuration", configuration}}, std::move(array));
}

TEST(TileCodec, MetadataOfEveryFormatIsReadAsItWasWritten) {
  using tiles::TileCodec;
  for (const tiles::TileFormat& format :
       {tiles::TileFormat{TileCodec::kJpeg, false, std::string("\xFF\xD8\0\xFF", 4)},
        {TileCodec::kJpeg, true, ""},
        {TileCodec::kJpeg2000, false, ""},
        {TileCodec::kJpeg2000, true, ""}}) {
    const auto array = Parse(ToJson(format, 3));
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->chain.tile, format);
    EXPECT_EQ(array->chain.codecs.size(), 1u);
  }
  const tiles::TileFormat grey;
  const auto array = Parse(ToJson(grey, 1), Tiled(DType::kUint8, 1));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->chain.tile, grey);
}

TEST(TileCodec, OtherTilesAreUnimplementedAndBrokenOnesInvalid) {
  const Json rgb = {{"colorspace_jpeg", "RGB"}, {"colorspace_data", "RGB"}};
  const auto with = [&](const char* key, Json value) {
    Json options = rgb;
    options[key] = std::move(value);
    return options;
  };
  EXPECT_TRUE(Parse("imagecodecs_jpeg", rgb).ok());
  for (const auto& [name, options] : std::vector<std::pair<std::string, Json>>{
           {"imagecodecs_jpeg", Json::object()},
           {"imagecodecs_jpeg", with("colorspace_jpeg", "CMYK")},
           {"imagecodecs_jpeg", with("colorspace_data", "YCbCr")},
           {"imagecodecs_jpeg", with("fancyupsampling", false)},
           {"imagecodecs_jpeg", with("header", "AAAA")},
           {"imagecodecs_jpeg2k", Json::object()},
           {"imagecodecs_jpegxl", rgb}}) {
    EXPECT_TRUE(absl::IsUnimplemented(Parse(name, options).status())) << name << options.dump();
  }
  EXPECT_TRUE(
      absl::IsUnimplemented(Parse("imagecodecs_jpeg", rgb, Tiled(DType::kUint16)).status()));
  EXPECT_TRUE(
      absl::IsUnimplemented(Parse("imagecodecs_jpeg", rgb, Tiled(DType::kUint8, 2)).status()));
  ArrayMetadata large = Tiled();
  large.shard_shape = {3, 1 << 13, 1 << 13};
  EXPECT_TRUE(absl::IsUnimplemented(Parse("imagecodecs_jpeg", rgb, large).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Parse("imagecodecs_jpeg", with("tables", "?")).status()));
  ArrayMetadata array = Tiled();
  const Json jpeg = {{"name", "imagecodecs_jpeg"}, {"configuration", rgb}};
  EXPECT_TRUE(absl::IsUnimplemented(ParseCodecsV3(Json::array({jpeg}), "a", array)))
      << "channels before rows and columns";
  array = Tiled();
  const Json bytes = {{"name", "bytes"}};
  EXPECT_TRUE(absl::IsInvalidArgument(ParseCodecsV3({Transpose(), bytes, jpeg}, "a", array)));
}

TEST(TileCodec, PixelsGoToAnyStridesAndAnyChannels) {
  std::vector<std::uint8_t> rgb;
  for (std::size_t i = 0; i < kHeight * kWidth; ++i) {
    for (int c = 0; c < 3; ++c)
      rgb.push_back(static_cast<std::uint8_t>(i / 8 + 60u * static_cast<unsigned>(c)));
  }
  workers::JpegEncoder encoder(90);
  tiles::TileFormat format;
  format.jpeg_tables = *encoder.Tables();
  std::vector<std::byte> tile;
  ASSERT_TRUE(encoder.Encode({rgb.data(), kWidth, kHeight}, tile).ok());
  const ArrayMetadata array = *Parse(ToJson(format, 3));
  ChunkScratch scratch;

  std::vector<std::uint8_t> whole(rgb.size());
  ChunkTarget target{.shape = {3, kHeight, kWidth},
                     .to = reinterpret_cast<std::byte*>(whole.data()),
                     .stride_bytes = {1, 3 * kWidth, 3}};
  ASSERT_TRUE(DecodeTileInto(array, tile, target, scratch.state()).ok());
  for (std::size_t i = 0; i < rgb.size(); ++i) ASSERT_NEAR(whole[i], rgb[i], 16) << i;

  // A part of two channels, plane by plane.
  constexpr std::size_t kTop = 5, kLeft = 9, kRows = 7, kColumns = 20;
  std::vector<std::uint8_t> planes(2 * kRows * kColumns);
  target = {.from = {1, kTop, kLeft},
            .shape = {2, kRows, kColumns},
            .to = reinterpret_cast<std::byte*>(planes.data()),
            .stride_bytes = {kRows * kColumns, kColumns, 1}};
  ASSERT_TRUE(DecodeTileInto(array, tile, target, scratch.state()).ok());
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::size_t c = i / (kRows * kColumns), y = i / kColumns % kRows, x = i % kColumns;
    ASSERT_EQ(planes[i], whole[((kTop + y) * kWidth + kLeft + x) * 3 + c + 1]) << i;
  }
  EXPECT_TRUE(absl::IsDataLoss(
      DecodeTileInto(array, std::span(tile).first(tile.size() / 2), target, scratch.state())));
}

}  // namespace
}  // namespace patchbay::zarr

// Shards made by rows, with the coarser levels beside them: the same bytes as level by level, and
// the same bytes as ever.
#include "runtime/zarr/shard_encoder.h"

#include <random>

#include "runtime/zarr/chunk_encoder.h"
#include "runtime/zarr/downsample.h"
#include "tests/runtime/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

ConstTensorView ViewOf(const TestImage& image) {
  ConstTensorView view;
  const auto element = static_cast<std::int64_t>(SizeOf(image.dtype));
  view.data = image.bytes.data();
  view.dtype = image.dtype;
  view.rank = 3;
  view.shape = {image.height, image.width, image.channels};
  view.stride_bytes = {image.width * image.channels * element, image.channels * element, element};
  return view;
}

TestImage HalfOf(const TestImage& image) {
  TestImage half =
      MakeImage(image.dtype, (image.height + 1) / 2, (image.width + 1) / 2, image.channels, 0);
  const ConstTensorView view = ViewOf(half);
  TensorView out = ContiguousView<3>(half.bytes.data(), half.dtype,
                                     {view.shape[0], view.shape[1], view.shape[2]});
  EXPECT_TRUE(DownsampleByTwo(ViewOf(image), out).ok());
  return half;
}

/// The rows of one shard's columns, `chunk_rows` chunks high at a time.
ShardRows RowsOf(const TestImage& image, const ImageStoreSettings& settings,
                 const ShardPlace& place, std::int64_t chunk_rows) {
  return [&image, settings, place, chunk_rows](std::int64_t row) -> StatusOr<ConstTensorView> {
    ConstTensorView view = ViewOf(image);
    const std::int64_t y = row * settings.chunk_px, x = place.column * settings.shard_px;
    const std::int64_t end = std::min((place.row + 1) * settings.shard_px, image.height);
    view.data += y * view.stride_bytes[0] + x * view.stride_bytes[1];
    view.shape[0] = std::min(chunk_rows * settings.chunk_px, end - y);
    view.shape[1] = std::min(settings.shard_px, image.width - x);
    return view;
  };
}

ImageStoreSettings SmallSettings() {
  ImageStoreSettings settings;
  settings.chunk_px = 32;
  settings.shard_px = 128;
  settings.codec_level = 1;
  return settings;
}

void ExpectSame(const StatusOr<EncodedShard>& a, const StatusOr<EncodedShard>& b) {
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(a->record, b->record);
  EXPECT_TRUE(a->bytes == b->bytes);
}

/// Encodes the finest level with its coarser ones and compares every shard of every level.
void ExpectColumnsEqualLevels(const ImageStoreSettings& settings, const TestImage& finest) {
  std::vector<TestImage> images = {finest};
  std::vector<LevelSize> sizes = {{finest.height, finest.width}};
  for (int i = 0; i < CoarserLevels(settings); ++i) {
    images.push_back(HalfOf(images.back()));
    sizes.push_back({images.back().height, images.back().width});
  }
  std::vector<ShardPiece> pieces;
  const LevelSize grid = ShardGridOf(settings, sizes[0]);
  for (std::int64_t i = 0; i < grid.height * grid.width; ++i) {
    const ShardPlace place{0, i / grid.width, i % grid.width};
    ShardEncoder encoder(settings, sizes, place);
    ExpectSame(encoder.Encode(RowsOf(finest, settings, place, 1 + i % 3)),
               EncodeShard(settings, sizes[0], place, PixelsOf(finest, settings.chunk_px)));
    const auto coarser = encoder.EncodeCoarser();
    ASSERT_TRUE(coarser.ok()) << coarser.status();
    for (const ShardPiece& piece : *coarser) {
      const auto parsed = ParsePiece(SerialisePiece(piece));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      pieces.push_back(*parsed);
    }
  }
  for (std::size_t level = 1; level < sizes.size(); ++level) {
    const LevelSize shards = ShardGridOf(settings, sizes[level]);
    for (std::int64_t i = 0; i < shards.height * shards.width; ++i) {
      const ShardPlace place{static_cast<int>(level), i / shards.width, i % shards.width};
      ExpectSame(
          AssembleShard(settings, sizes[level], place, pieces),
          EncodeShard(settings, sizes[level], place, PixelsOf(images[level], settings.chunk_px)));
    }
  }
}

TEST(ShardEncoder, CoarserLevelsAreTheSameAsEachByItself) {
  ImageStoreSettings settings = SmallSettings();
  EXPECT_EQ(CoarserLevels(settings), 2);
  ExpectColumnsEqualLevels(settings, MakeImage(DType::kUint8, 395, 301, 3, 3));
  settings.dtype = DType::kUint16;
  settings.channels = 1;
  settings.codec = StoreCodec::kBloscLz4;
  ExpectColumnsEqualLevels(settings, MakeImage(DType::kUint16, 129, 257, 1, 4));
  settings.shard_px = 32 * 8;
  settings.codec = StoreCodec::kZstd;
  EXPECT_EQ(CoarserLevels(settings), 3);
  ExpectColumnsEqualLevels(settings, MakeImage(DType::kUint16, 513, 700, 1, 5));
}

TEST(ShardEncoder, BackgroundStaysOutOfPiecesToo) {
  const ImageStoreSettings settings = SmallSettings();
  TestImage image = MakeImage(DType::kUint8, 300, 300, 3, 1);
  std::fill(image.bytes.begin(), image.bytes.end(), std::byte{255});
  ExpectColumnsEqualLevels(settings, image);
  image.bytes[3 * (200 * 300 + 250)] = std::byte{7};
  ExpectColumnsEqualLevels(settings, image);
}

TEST(ShardEncoder, ChunksThatDoNotDivideAndVeryLargeShardsHaveNoCoarserLevels) {
  ImageStoreSettings settings = SmallSettings();
  settings.shard_px = 32;
  EXPECT_EQ(CoarserLevels(settings), 0);
  settings.shard_px = 96;
  EXPECT_EQ(CoarserLevels(settings), 0);
  settings.chunk_px = 33;
  settings.shard_px = 132;
  EXPECT_EQ(CoarserLevels(settings), 0);
  settings.chunk_px = 512;
  settings.shard_px = 32768;  // a gigabyte of coarser pixels
  EXPECT_EQ(CoarserLevels(settings), 0);
}

TEST(ShardEncoder, MissingChunksAndWrongSizesAreRefused) {
  const ImageStoreSettings settings = SmallSettings();
  const TestImage image = MakeImage(DType::kUint8, 256, 256, 3, 2);
  ShardEncoder encoder(settings, {{256, 256}, {128, 128}}, {0, 0, 0});
  ASSERT_TRUE(encoder.Encode(RowsOf(image, settings, {0, 0, 0}, 1)).ok());
  const auto pieces = encoder.EncodeCoarser();
  ASSERT_TRUE(pieces.ok());
  const auto assembled = AssembleShard(settings, {128, 128}, {1, 0, 0}, *pieces);
  EXPECT_TRUE(absl::IsInvalidArgument(assembled.status()));
  EXPECT_THAT(std::string(MessageOf(assembled.status())), testing::HasSubstr("chunk 0,2"));
  ShardEncoder uneven(settings, {{256, 256}, {127, 128}}, {0, 0, 0});
  EXPECT_TRUE(
      absl::IsInvalidArgument(uneven.Encode(RowsOf(image, settings, {0, 0, 0}, 1)).status()));
  ShardEncoder outside(settings, {{256, 256}}, {0, 2, 0});
  EXPECT_TRUE(
      absl::IsInvalidArgument(outside.Encode(RowsOf(image, settings, {0, 2, 0}, 1)).status()));
}

TEST(ShardPiece, AnyAlteredOrMissingByteIsSeen) {
  const ImageStoreSettings settings = SmallSettings();
  const TestImage image = MakeImage(DType::kUint8, 100, 100, 3, 2);
  ShardEncoder encoder(settings, {{100, 100}, {50, 50}}, {0, 0, 0});
  ASSERT_TRUE(encoder.Encode(RowsOf(image, settings, {0, 0, 0}, 4)).ok());
  const std::vector<std::byte> bytes = SerialisePiece((*encoder.EncodeCoarser())[0]);
  EXPECT_TRUE(ParsePiece(bytes).ok());
  for (std::size_t i = 0; i < bytes.size(); i += 1 + i / 16) {
    std::vector<std::byte> altered = bytes;
    altered[i] ^= std::byte{4};
    EXPECT_TRUE(absl::IsDataLoss(ParsePiece(altered).status())) << i;
    EXPECT_TRUE(absl::IsDataLoss(ParsePiece(std::span(bytes).first(i)).status())) << i;
  }
}

}  // namespace
}  // namespace patchbay::zarr

// Shards made by rows, with the coarser levels beside them: the same bytes as level by level, and
// the same bytes as ever.
#include "runtime/format/zarr/shard_encoder.h"

#include <random>

#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/downsample.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

TestImage HalfOf(const TestImage& image) {
  TestImage half{image.dtype, (image.height + 1) / 2, (image.width + 1) / 2, image.channels,
                 {},          (image.depth + 1) / 2};
  half.bytes.resize(
      static_cast<std::size_t>(half.depth * half.height * half.width * half.channels) *
      SizeOf(half.dtype));
  const TensorView out = ContiguousView<4>(half.bytes.data(), half.dtype,
                                           {half.depth, half.height, half.width, half.channels});
  EXPECT_TRUE(DownsampleByTwo(image.View(), out).ok());
  return half;
}

ChunkPixels ChunksOf(const TestImage& image, const ImageStoreSettings& settings) {
  return settings.axes == StoreAxes::kZyx ? VoxelsOf(image, settings.chunk)
                                          : PixelsOf(image, settings.chunk.y);
}

/// The rows of one shard's columns, `chunk_rows` chunks high at a time.
ShardRows RowsOf(const TestImage& image, const ImageStoreSettings& settings,
                 const ShardPlace& place, std::int64_t chunk_rows) {
  return [&image, settings, place, chunk_rows](const Point& chunk) -> StatusOr<ConstTensorView> {
    ConstTensorView view = image.View();
    const std::int64_t z = chunk.z * settings.chunk.z, y = chunk.y * settings.chunk.y;
    const std::int64_t x = chunk.x * settings.chunk.x;
    const std::int64_t end = std::min((place.at.y + 1) * settings.shard.y, image.height);
    view.data += z * view.stride_bytes[0] + y * view.stride_bytes[1] + x * view.stride_bytes[2];
    view.shape[0] = std::min(settings.chunk.z, image.depth - z);
    view.shape[1] = std::min(chunk_rows * settings.chunk.y, end - y);
    view.shape[2] = std::min(settings.shard.x, image.width - x);
    return view;
  };
}

ImageStoreSettings SmallSettings() {
  ImageStoreSettings settings;
  settings.chunk = Flat(32, 32);
  settings.shard = Flat(128, 128);
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
  std::vector<Extent> sizes = {{finest.depth, finest.height, finest.width}};
  for (int i = 0; i < CoarserLevels(settings); ++i) {
    images.push_back(HalfOf(images.back()));
    sizes.push_back(patchbay::HalfOf(sizes.back()));
  }
  std::vector<ShardPiece> pieces;
  const Extent grid = ShardGridOf(settings, sizes[0]);
  for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
    const ShardPlace place{0, CellAt(grid, i)};
    ShardEncoder encoder(settings, sizes, place);
    ExpectSame(encoder.Encode(RowsOf(finest, settings, place, 1 + i % 3)),
               EncodeShard(settings, sizes[0], place, ChunksOf(finest, settings)));
    const auto coarser = encoder.EncodeCoarser();
    ASSERT_TRUE(coarser.ok()) << coarser.status();
    for (const ShardPiece& piece : *coarser) {
      const auto parsed = ParsePiece(SerialisePiece(piece));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      pieces.push_back(*parsed);
    }
  }
  for (std::size_t level = 1; level < sizes.size(); ++level) {
    const Extent shards = ShardGridOf(settings, sizes[level]);
    for (std::int64_t i = 0; i < shards.Pixels(); ++i) {
      const ShardPlace place{static_cast<int>(level), CellAt(shards, i)};
      ExpectSame(AssembleShard(settings, sizes[level], place, pieces),
                 EncodeShard(settings, sizes[level], place, ChunksOf(images[level], settings)));
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
  settings.shard = Flat(32 * 8, 32 * 8);
  settings.codec = StoreCodec::kZstd;
  EXPECT_EQ(CoarserLevels(settings), 3);
  ExpectColumnsEqualLevels(settings, MakeImage(DType::kUint16, 513, 700, 1, 5));
}

TEST(ShardEncoder, CoarserLevelsOfAVolumeAreTheSameAsEachByItself) {
  ImageStoreSettings settings = VolumeSettings(DType::kInt16);
  settings.chunk = {8, 16, 32};
  settings.shard = {32, 64, 128};
  EXPECT_EQ(CoarserLevels(settings), 2);
  ExpectColumnsEqualLevels(settings, MakeVolume<std::int16_t>(DType::kInt16, {71, 95, 150}, 6));
  ExpectColumnsEqualLevels(settings, MakeVolume<std::int16_t>(DType::kInt16, {1, 64, 129}, 7));
  settings.dtype = DType::kFloat32;
  settings.codec = StoreCodec::kBloscLz4;
  ExpectColumnsEqualLevels(settings, MakeVolume<float>(DType::kFloat32, {33, 65, 20}, 8));
  settings.shard.z = 8;  // one chunk deep: half of it is not a whole chunk
  EXPECT_EQ(CoarserLevels(settings), 0);
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
  settings.shard = Flat(32, 32);
  EXPECT_EQ(CoarserLevels(settings), 0);
  settings.shard = Flat(96, 96);
  EXPECT_EQ(CoarserLevels(settings), 0);
  settings.chunk = Flat(33, 33);
  settings.shard = Flat(132, 132);
  EXPECT_EQ(CoarserLevels(settings), 0);
  settings.chunk = Flat(512, 512);
  settings.shard = Flat(32768, 32768);  // a gigabyte of coarser pixels
  EXPECT_EQ(CoarserLevels(settings), 0);
}

TEST(ShardEncoder, ShardsThatAreAssembledTogetherAreThoseAssembledAlone) {
  const ImageStoreSettings settings = SmallSettings();
  const Extent level = Flat(256, 256);
  std::vector<WholeShard> shards;
  std::vector<EncodedShard> alone;
  for (std::int64_t x = 0; x < 3; ++x) {
    const ShardPlace place{0, {0, x % 2, x / 2}};
    ShardPiece piece = ChunksOf(settings, level, place);
    const std::vector<std::byte> tile(static_cast<std::size_t>(100 * x + 1), std::byte{7});
    for (std::int64_t i = 0; i < piece.grid.Pixels(); ++i) {
      // The third shard is empty.
      AppendEncoded(x == 2 ? std::span<const std::byte>() : tile, Sha256Of("tile"), piece);
    }
    const auto one = AssembleShard(settings, level, place, piece);
    ASSERT_TRUE(one.ok()) << one.status();
    alone.push_back(*one);
    shards.push_back({level, place, std::move(piece)});
  }
  const auto together = AssembleShards(settings, shards);
  ASSERT_TRUE(together.ok()) << together.status();
  ASSERT_EQ(together->size(), 3);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ((*together)[i].bytes, alone[i].bytes);
    EXPECT_EQ((*together)[i].record, alone[i].record);
  }
  EXPECT_EQ((*together)[2].record.size_bytes, 0);
  shards[1].piece.chunks.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(AssembleShards(settings, shards).status()));
}

TEST(ShardEncoder, MissingChunksAndWrongSizesAreRefused) {
  const ImageStoreSettings settings = SmallSettings();
  const TestImage image = MakeImage(DType::kUint8, 256, 256, 3, 2);
  ShardEncoder encoder(settings, {Flat(256, 256), Flat(128, 128)}, {0, {0, 0, 0}});
  ASSERT_TRUE(encoder.Encode(RowsOf(image, settings, {0, {0, 0, 0}}, 1)).ok());
  const auto pieces = encoder.EncodeCoarser();
  ASSERT_TRUE(pieces.ok());
  const auto assembled = AssembleShard(settings, Flat(128, 128), {1, {0, 0, 0}}, *pieces);
  EXPECT_TRUE(absl::IsInvalidArgument(assembled.status()));
  EXPECT_THAT(std::string(MessageOf(assembled.status())), testing::HasSubstr("chunk (0,0,2)"));
  const auto taken = AssembleShard(settings, Flat(128, 128), {1, {0, 0, 0}}, pieces->front());
  EXPECT_TRUE(absl::IsInvalidArgument(taken.status())) << "a quarter is not the whole";
  ShardEncoder uneven(settings, {Flat(256, 256), Flat(127, 128)}, {0, {0, 0, 0}});
  EXPECT_TRUE(
      absl::IsInvalidArgument(uneven.Encode(RowsOf(image, settings, {0, {0, 0, 0}}, 1)).status()));
  ShardEncoder outside(settings, {Flat(256, 256)}, {0, {0, 2, 0}});
  EXPECT_TRUE(
      absl::IsInvalidArgument(outside.Encode(RowsOf(image, settings, {0, {0, 2, 0}}, 1)).status()));
}

TEST(ShardPiece, AnyAlteredOrMissingByteIsSeen) {
  const ImageStoreSettings settings = SmallSettings();
  const TestImage image = MakeImage(DType::kUint8, 100, 100, 3, 2);
  ShardEncoder encoder(settings, {Flat(100, 100), Flat(50, 50)}, {0, {}});
  ASSERT_TRUE(encoder.Encode(RowsOf(image, settings, {0, {}}, 4)).ok());
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

// Shards and chunks as hostile input: always an error that names the chunk, never a crash, a hang
// or memory beyond the chunk's own size.
#include <atomic>
#include <thread>

#include <zlib.h>
#include <zstd.h>

#include "runtime/format/zarr/codec/blosc.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

/// A store of one level with one shard of 2 x 2 chunks, and ways to damage it.
class DamagedShard : public testing::Test {
 protected:
  void SetUp() override {
    spec_.settings.chunk = Flat(64, 64);
    spec_.settings.shard = Flat(128, 128);
    spec_.levels = {Flat(128, 128)};
    image_ = MakeImage(DType::kUint8, 128, 128, 3, 5);
    WriteStore(folder_ / "s", spec_, {image_});
    bytes_ = ReadText(File());
  }

  std::string File() const { return folder_ / "s/0/c/0/0/0"; }

  std::uint64_t Index(std::size_t slot) const {
    std::uint64_t value;
    std::memcpy(&value, bytes_.data() + bytes_.size() - 68 + 8 * slot, 8);
    return value;
  }

  /// Sets an index value and makes the index's checksum right again.
  void SetIndex(std::size_t slot, std::uint64_t value) {
    std::memcpy(bytes_.data() + bytes_.size() - 68 + 8 * slot, &value, 8);
    const std::uint32_t crc = Crc32c(AsBytes(bytes_).subspan(bytes_.size() - 68, 64));
    std::memcpy(bytes_.data() + bytes_.size() - 4, &crc, 4);
  }

  Status Read() {
    WriteText(File(), bytes_);
    const auto array = Array::Open(Folders::OfThisUser(), folder_ / "s/0");
    if (!array.ok()) return array.status();
    return ReadAll(*array).status();
  }

  void ExpectDataLoss(const char* cause) {
    const Status status = Read();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(MessageOf(status)), testing::HasSubstr("s/0/c/0/0/0"));
    EXPECT_THAT(std::string(MessageOf(status)), testing::HasSubstr(cause));
  }

  TempFolder folder_;
  ImageStoreSpec spec_;
  TestImage image_;
  std::string bytes_;
};

TEST_F(DamagedShard, UndamagedItReads) { EXPECT_TRUE(Read().ok()); }

TEST_F(DamagedShard, EveryTruncationIsSeen) {
  const std::string whole = bytes_;
  for (std::size_t n = 0; n < whole.size(); n += 1 + n / 7) {
    bytes_ = whole.substr(0, n);
    EXPECT_TRUE(absl::IsDataLoss(Read())) << n;
  }
}

TEST_F(DamagedShard, EveryAlteredByteIsSeen) {
  const std::string whole = bytes_;
  for (std::size_t at = 0; at < whole.size(); at += 97) {
    bytes_ = whole;
    bytes_[at] = static_cast<char>(bytes_[at] ^ 0x10);
    EXPECT_TRUE(absl::IsDataLoss(Read())) << at;
  }
}

TEST_F(DamagedShard, AnIndexThatPointsOutsideTheFileIsRefused) {
  SetIndex(0, std::uint64_t{1} << 40);
  ExpectDataLoss("lies outside the file");
}

TEST_F(DamagedShard, AnIndexWhoseSumOverflowsIsRefused) {
  SetIndex(0, ~std::uint64_t{0} - 7);
  SetIndex(1, 16);
  ExpectDataLoss("lies outside the file");
  SetIndex(0, 16);
  SetIndex(1, ~std::uint64_t{0} - 7);
  ExpectDataLoss("lies outside the file");
}

TEST_F(DamagedShard, AnIndexThatSwapsTwoChunksOfOneSizeReadsOtherPixelsButOverlapsFail) {
  SetIndex(2, Index(0) + 1);
  ExpectDataLoss("crc32c mismatch");
}

TEST_F(DamagedShard, AChunkLargerThanAnyEncodingIsNotEvenRead) {
  bytes_.insert(0, std::string(4 << 20, 'x'));
  SetIndex(0, 0);
  SetIndex(1, 3 << 20);
  ExpectDataLoss("more than a chunk of 12288 bytes can need");
}

TEST_F(DamagedShard, AChunkCutToNothingIsRefused) {
  SetIndex(1, 0);
  ExpectDataLoss("crc32c: only 0 bytes");
}

TEST_F(DamagedShard, AFolderUnderTheShardsNameIsAnError) {
  std::filesystem::remove(File());
  std::filesystem::create_directories(File());
  const auto array = Array::Open(Folders::OfThisUser(), folder_ / "s/0");
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(*array).status())) << ReadAll(*array).status();
}

/// A v2 array of one chunk of 64 bytes with the given compressor, holding `bytes`.
Status ReadOne(const std::string& compressor, std::string_view bytes) {
  const TempFolder folder;
  WriteText(folder / "a/.zarray",
            R"({"zarr_format":2,"shape":[64],"chunks":[64],"dtype":"|u1","compressor":{"id":")" +
                compressor + R"("},"filters":null,"order":"C","fill_value":0})");
  WriteText(folder / "a/0", bytes);
  const auto array = Array::Open(Folders::OfThisUser(), folder / "a");
  if (!array.ok()) return array.status();
  return ReadAll(*array).status();
}

std::string ZstdOfSize(std::size_t n) {
  const std::string raw(n, 'a');
  std::string out(ZSTD_compressBound(n), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), n, 3));
  return out;
}

std::string ZlibOf(std::size_t n) {
  const std::string raw(n, 'a');
  uLongf size = compressBound(n);
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
           n);
  out.resize(size);
  return out;
}

TEST(DecompressionBomb, IsRefusedByEveryCodecWithoutExpanding) {
  EXPECT_TRUE(ReadOne("zstd", ZstdOfSize(64)).ok());
  EXPECT_TRUE(ReadOne("zlib", ZlibOf(64)).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadOne("zstd", ZstdOfSize(1 << 28))));
  EXPECT_TRUE(absl::IsDataLoss(ReadOne("zlib", ZlibOf(1 << 26))));
  EXPECT_TRUE(absl::IsDataLoss(ReadOne("zstd", ZstdOfSize(63))));
  EXPECT_TRUE(absl::IsDataLoss(ReadOne("zlib", ZlibOf(63))));
  EXPECT_TRUE(absl::IsDataLoss(ReadOne("lz4", std::string("\xff\xff\xff\x7f", 4) + "abc")));
  EXPECT_TRUE(absl::IsDataLoss(ReadOne("lz4", "ab")));
  EXPECT_TRUE(absl::IsDataLoss(ReadOne("bz2", "BZh9")));
  const unsigned char frame[20] = {2, 1, 0x02, 1, 0xff, 0xff, 0xff, 0x7f, 0, 0, 1, 0, 20};
  EXPECT_TRUE(
      absl::IsDataLoss(ReadOne("blosc", {reinterpret_cast<const char*>(frame), sizeof frame})));
  for (const char* codec : {"blosc", "zstd", "zlib", "gzip", "lz4", "bz2"}) {
    EXPECT_TRUE(absl::IsDataLoss(ReadOne(codec, ""))) << codec;
    EXPECT_TRUE(absl::IsDataLoss(ReadOne(codec, std::string(40, '\x17')))) << codec;
  }
}

TEST(ReadRegion, GivesTheSamePixelsToManyThreadsWithCachesThatHoldAlmostNothing) {
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings.chunk = Flat(32, 32);
  spec.settings.shard = Flat(64, 64);
  spec.settings.codec = StoreCodec::kBloscLz4;
  spec.levels = {Flat(400, 300)};
  const TestImage image = MakeImage(DType::kUint8, 400, 300, 3, 5);
  WriteStore(folder / "s", spec, {image});
  ArrayOptions options;
  options.indexes = std::make_shared<IndexCache>(300);
  auto files = std::make_shared<FileCache>(2);
  const auto array = Array::Open(
      std::make_shared<FileByteStore>(Folders::OfThisUser(), folder / "s", std::move(files)), "0",
      options);
  ASSERT_TRUE(array.ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::byte> out(50 * 40 * 3);
      auto view = ContiguousView<3>(out.data(), DType::kUint8, {3, 50, 40});
      view.stride_bytes = {1, 120, 3};
      for (std::uint64_t i = 0; i < 200; ++i) {
        const auto y = static_cast<std::int64_t>(Mix(t * 1000 + i) % 350);
        const auto x = static_cast<std::int64_t>(Mix(t * 1000 + i + 500) % 260);
        if (!array->ReadRegion({{0, y, x}, {3, 50, 40}}, view).ok()) ++wrong;
        for (std::int64_t row = 0; row < 50; ++row) {
          const auto* expected = image.bytes.data() + ((y + row) * 300 + x) * 3;
          if (std::memcmp(out.data() + row * 120, expected, 120) != 0) ++wrong;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ReadRegion, RefusesRegionsOutsideTheArrayAndViewsOfAnotherShape) {
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(128, 128);
  spec.levels = {Flat(100, 90)};
  WriteStore(folder / "s", spec, {MakeImage(DType::kUint8, 100, 90, 3, 5)});
  const auto array = Array::Open(Folders::OfThisUser(), folder / "s/0");
  ASSERT_TRUE(array.ok());
  std::vector<std::byte> out(30000);
  const auto read = [&](Region region, std::array<std::int64_t, 3> shape, DType dtype) {
    return array->ReadRegion(region, ContiguousView<3>(out.data(), dtype, shape));
  };
  EXPECT_TRUE(read({{0, 0, 0}, {3, 100, 90}}, {3, 100, 90}, DType::kUint8).ok());
  EXPECT_TRUE(read({{0, 5, 5}, {3, 0, 9}}, {3, 0, 9}, DType::kUint8).ok());
  const std::int64_t big = std::int64_t{1} << 62;
  for (const Region& region : {Region{{0, 0, 0}, {3, 101, 90}}, Region{{0, -1, 0}, {3, 10, 90}},
                               Region{{0, 0, big}, {3, 10, big}}, Region{{0, 0, 91}, {3, 10, 0}}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(read(region, {3, 10, 90}, DType::kUint8)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(read({{0, 0, 0}, {3, 10, 10}}, {3, 10, 9}, DType::kUint8)));
  EXPECT_TRUE(absl::IsInvalidArgument(read({{0, 0, 0}, {3, 10, 10}}, {3, 10, 10}, DType::kUint16)));
}

}  // namespace
}  // namespace patchbay::zarr

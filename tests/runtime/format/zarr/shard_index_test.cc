// The index of a zarr shard: its place, its checksum, its seal, its byte order and its entries.
#include "runtime/format/zarr/shard_index.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "tests/runtime/format/zarr/bytes_in_memory.h"

namespace patchbay::zarr {
namespace {

using testing::HasSubstr;

std::string Number(std::uint64_t value, bool big_endian) {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text.push_back(static_cast<char>(value >> (8 * (big_endian ? 7 - i : i))));
  return text;
}

/// Two chunks of one axis in a file; 60 bytes of chunks before or after the index.
struct Shard {
  ArrayMetadata array;
  std::uint64_t offset = 0, size = 60;
  std::string seal;

  Shard() {
    array.shape = array.shard_shape = {20};
    array.chunk_shape = {10};
    array.sharded = true;
  }
  std::string Index() const {
    const bool big = array.index_big_endian;
    std::string index =
        Number(offset, big) + Number(size, big) + Number(kAbsent, big) + Number(kAbsent, big);
    const std::uint32_t crc = Crc32c(AsBytes(index));
    std::string checksum(4, '\0');
    std::memcpy(checksum.data(), &crc, 4);
    return array.index_checksum ? index + checksum : index;
  }
  std::string File() const {
    const std::string chunks(60, 'c');
    return array.index_at_end ? chunks + seal + Index() : Index() + chunks;
  }
  StatusOr<ShardIndex> Read(const std::string& file,
                            const std::uint32_t* expected_seal = nullptr) const {
    return ReadIndex(array, BytesInMemory(file), {"c/0", expected_seal});
  }
};

std::string Refusal(const StatusOr<ShardIndex>& index) {
  EXPECT_TRUE(absl::IsDataLoss(index.status())) << index.status();
  return std::string(MessageOf(index.status()));
}

TEST(ShardIndexBytes, AreReadAtEitherEndInEitherOrder) {
  for (int kind = 0; kind < 8; ++kind) {
    Shard shard;
    shard.array.index_at_end = (kind & 1) != 0;
    shard.array.index_big_endian = (kind & 2) != 0;
    shard.array.index_checksum = (kind & 4) != 0;
    shard.offset = 7;
    const auto index = shard.Read(shard.File());
    ASSERT_TRUE(index.ok()) << index.status() << " " << kind;
    ASSERT_EQ(index->size(), 2u);
    EXPECT_EQ((*index)[0].offset, 7u);
    EXPECT_EQ((*index)[0].size_bytes, 60u);
    EXPECT_TRUE((*index)[1].Absent());
  }
}

TEST(ShardIndexBytes, EntriesEndWithTheFile) {
  Shard shard;
  const std::uint64_t file = shard.File().size();
  const auto read = [&](std::uint64_t offset, std::uint64_t size) {
    shard.offset = offset;
    shard.size = size;
    return shard.Read(shard.File());
  };
  EXPECT_TRUE(read(file - 5, 5).ok());
  EXPECT_TRUE(read(file, 0).ok());
  EXPECT_THAT(Refusal(read(file - 5, 6)), HasSubstr("index entry 0"));
  EXPECT_THAT(Refusal(read(file + 1, 0)), HasSubstr("lies outside the file"));
  EXPECT_THAT(Refusal(read(8, ~std::uint64_t{0} - 4)), HasSubstr("lies outside the file"));
  EXPECT_THAT(Refusal(read(kAbsent, 0)), HasSubstr("lies outside the file"));
}

TEST(ShardIndexBytes, AFileThatIsShorterThanItsIndexIsNamed) {
  Shard shard;
  const std::string index = shard.Index();
  const auto whole = shard.Read(index);
  EXPECT_THAT(Refusal(whole), HasSubstr("index entry 0")) << "the index alone is read";
  EXPECT_THAT(Refusal(shard.Read(index.substr(1))),
              HasSubstr("c/0: the file has 35 bytes, its index alone needs 36"));
  const std::uint32_t seal = 1;
  EXPECT_THAT(Refusal(shard.Read(index, &seal)), HasSubstr("needs 40"));
}

TEST(ShardIndexBytes, EveryBitOfTheChecksumCounts) {
  Shard shard;
  const std::string good = shard.File();
  ASSERT_TRUE(shard.Read(good).ok());
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::string bad = good;
    char& byte = bad[good.size() - 1 - bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    EXPECT_THAT(Refusal(shard.Read(bad)), HasSubstr("crc32c mismatch")) << bit;
  }
}

TEST(ShardIndexBytes, TheSealIsThatOfTheListedShard) {
  Shard shard;
  shard.seal = std::string("\x12\x34\x56\x78", 4);
  const std::uint32_t listed = 0x12345678, other = 0x12345679;
  EXPECT_TRUE(shard.Read(shard.File(), &listed).ok());
  EXPECT_THAT(Refusal(shard.Read(shard.File(), &other)),
              HasSubstr("another shard than the store lists here"));
  EXPECT_TRUE(shard.Read(shard.File()).ok()) << "where none is listed, any is taken";
}

}  // namespace
}  // namespace patchbay::zarr

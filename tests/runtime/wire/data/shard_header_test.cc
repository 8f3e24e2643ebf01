#include "runtime/wire/data/shard_header.h"

#include <array>

#include "gtest/gtest.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using testing::HeaderOf;
using testing::SecretOf;

std::array<std::byte, kShardHeaderBytes> Encoded(const ShardHeader& h) {
  std::array<std::byte, kShardHeaderBytes> bytes;
  EncodeShardHeader(h, SecretOf(1), bytes);
  return bytes;
}

ShardHeader SampleHeader() {
  ShardHeader h;
  h.stream = 0x0102030405060708u;
  h.shard = ShardId{3, 0x1122334455667788u, 5, 6};
  h.grant = Grant{7, 0x99, 4096, 0x2000};
  h.lease = LeaseNumber{9, 0xaabbccddeeff0011u};
  h.landing = Landing::kDevice;
  h.arrays = 3;
  h.array = 2;
  h.crc32c = {0xdeadbeef, 1, 0xffffffff};
  h.times = {1, 0x20000, 0xffffffff, 4};
  return h;
}

TEST(ShardHeader, ComesBackAsItWasWritten) {
  const auto decoded = DecodeShardHeader(Encoded(SampleHeader()), SecretOf(1));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, SampleHeader());
}

TEST(ShardHeader, LiesInMemoryAsThePageSays) {
  const auto bytes = Encoded(SampleHeader());
  EXPECT_EQ(AsText(std::span(bytes).first(4)), "PSHR");
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 0x08);  // stream, lowest byte first
  EXPECT_EQ(std::to_integer<int>(bytes[15]), 0x01);
  EXPECT_EQ(std::to_integer<int>(bytes[36]), 7);     // slot
  EXPECT_EQ(std::to_integer<int>(bytes[53]), 0x20);  // count
  EXPECT_EQ(std::to_integer<int>(bytes[7]), 2);      // array
  EXPECT_EQ(std::to_integer<int>(bytes[60]), 3);     // arrays
  EXPECT_EQ(std::to_integer<int>(bytes[80]), 0xef);  // crc32c of the first
  EXPECT_EQ(std::to_integer<int>(bytes[150]), 2);    // decode
  EXPECT_EQ(std::to_integer<int>(bytes[156]), 4);    // transfer
}

TEST(ShardHeader, RefusesEveryFlippedBit) {
  const auto good = Encoded(SampleHeader());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(DecodeShardHeader(bad, SecretOf(1)).ok()) << "bit " << bit;
  }
}

TEST(ShardHeader, RefusesAnotherVersionNamingBoth) {
  auto later = Encoded(SampleHeader());
  later[4] = static_cast<std::byte>(kShardHeaderVersion + 1);
  EXPECT_EQ(MessageOf(DecodeShardHeader(later, SecretOf(1)).status()),
            StrCat("read shard header: version ", kShardHeaderVersion + 1, ", this program knows ",
                   kShardHeaderVersion,
                   "; run the same release of Patchbay on every node and in every program"));
}

TEST(ShardHeader, RefusesImpossibleArraysAndLandingsThoughTheProofIsRight) {
  const auto refused = [](auto change) {
    ShardHeader header = SampleHeader();
    change(header);
    return absl::IsInvalidArgument(DecodeShardHeader(Encoded(header), SecretOf(1)).status());
  };
  EXPECT_TRUE(refused([](ShardHeader& h) { h.arrays = 0; }));
  EXPECT_TRUE(refused([](ShardHeader& h) {
    h.arrays = 0;
    h.array = kEveryArray;
    h.crc32c = {};
  }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.landing = static_cast<Landing>(2); }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.arrays = kMaxArrays + 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.array = 3; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.array = kEveryArray - 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.crc32c[3] = 1; })) << "of an array there is not";
  EXPECT_FALSE(refused([](ShardHeader& h) { h.array = kEveryArray; }));
}

TEST(ShardHeader, RefusesAnotherStreamsSecretWithoutSayingMore) {
  const auto decoded = DecodeShardHeader(Encoded(SampleHeader()), SecretOf(2));
  EXPECT_TRUE(absl::IsPermissionDenied(decoded.status())) << decoded.status();
}

TEST(ShardHeader, RefusesEveryOtherLength) {
  const auto good = Encoded(SampleHeader());
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(DecodeShardHeader(std::span(good).first(n), SecretOf(1)).status()));
  }
  std::array<std::byte, kShardHeaderBytes + 1> longer{};
  std::copy(good.begin(), good.end(), longer.begin());
  EXPECT_FALSE(DecodeShardHeader(longer, SecretOf(1)).ok());
}

TEST(StreamSecret, HasOneLength) {
  EXPECT_TRUE(StreamSecretFromText(std::string(32, 'x')).ok());
  EXPECT_FALSE(StreamSecretFromText(std::string(31, 'x')).ok());
  EXPECT_FALSE(StreamSecretFromText("").ok());
}

TEST(EqualInConstantTime, ComparesContentAndLength) {
  EXPECT_TRUE(EqualInConstantTime(AsBytes("abc"), AsBytes("abc")));
  EXPECT_FALSE(EqualInConstantTime(AsBytes("abc"), AsBytes("abd")));
  EXPECT_FALSE(EqualInConstantTime(AsBytes("abc"), AsBytes("abcd")));
}

}  // namespace
}  // namespace patchbay::data

#include "runtime/data/shard_header.h"

#include <array>

#include "gtest/gtest.h"
#include "tests/runtime/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using testing::HeaderOf;
using testing::SecretOf;

std::array<std::byte, kShardHeaderBytes> Encoded(const ShardHeader& h) {
  std::array<std::byte, kShardHeaderBytes> bytes;
  EncodeShardHeader(h, SecretOf(1), bytes);
  return bytes;
}

ShardHeader Sample() {
  ShardHeader h;
  h.stream = 0x0102030405060708u;
  h.shard = ShardId{3, 0x1122334455667788u, 5, 6};
  h.grant = Grant{7, 0x99, 4096, 8192};
  h.lease = LeaseNumber{9, 0xaabbccddeeff0011u};
  h.landing = Landing::kDevice;
  h.crc32c = 0xdeadbeef;
  return h;
}

TEST(ShardHeader, ComesBackAsItWasWritten) {
  const auto decoded = DecodeShardHeader(Encoded(Sample()), SecretOf(1));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, Sample());
}

TEST(ShardHeader, LiesInMemoryAsThePageSays) {
  const auto bytes = Encoded(Sample());
  EXPECT_EQ(AsText(std::span(bytes).first(4)), "PSHR");
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 0x08);  // stream, lowest byte first
  EXPECT_EQ(std::to_integer<int>(bytes[15]), 0x01);
  EXPECT_EQ(std::to_integer<int>(bytes[36]), 7);     // slot
  EXPECT_EQ(std::to_integer<int>(bytes[57]), 0x20);  // bytes = 8192
}

TEST(ShardHeader, RefusesEveryFlippedBit) {
  const auto good = Encoded(Sample());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(DecodeShardHeader(bad, SecretOf(1)).ok()) << "bit " << bit;
  }
}

TEST(ShardHeader, RefusesAnotherStreamsSecretWithoutSayingMore) {
  const auto decoded = DecodeShardHeader(Encoded(Sample()), SecretOf(2));
  EXPECT_TRUE(absl::IsPermissionDenied(decoded.status())) << decoded.status();
}

TEST(ShardHeader, RefusesEveryOtherLength) {
  const auto good = Encoded(Sample());
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

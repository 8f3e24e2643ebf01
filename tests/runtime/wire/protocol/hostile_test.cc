// Bytes that a hostile or broken peer can put on the wire, and their cost.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/wire/protocol/codec.h"
#include "tests/runtime/wire/protocol/every_field.h"

namespace patchbay::protocol {
namespace {

using test::Filled;
using test::kBodies;

/// A message by hand: one segment of these words.
std::string Frame(const std::vector<std::uint64_t>& words) {
  std::string bytes(8 * (words.size() + 1), '\0');
  const std::uint32_t header[2] = {0, static_cast<std::uint32_t>(words.size())};
  std::memcpy(bytes.data(), header, sizeof header);
  std::memcpy(bytes.data() + 8, words.data(), 8 * words.size());
  return bytes;
}

std::uint64_t StructPointer(std::int32_t offset, std::uint16_t data_words, std::uint16_t pointers) {
  return (static_cast<std::uint64_t>(pointers) << 48) |
         (static_cast<std::uint64_t>(data_words) << 32) | (static_cast<std::uint32_t>(offset) << 2);
}

std::uint64_t ListPointer(std::int32_t offset, unsigned element_size, std::uint32_t count) {
  return (static_cast<std::uint64_t>(count) << 35) |
         (static_cast<std::uint64_t>(element_size) << 32) |
         (static_cast<std::uint32_t>(offset) << 2) | 1;
}

/// An envelope with four data words (version, discriminant, incarnation, request id) and one
/// pointer, which is the next word's job.
std::vector<std::uint64_t> EnvelopeWords(std::uint16_t discriminant) {
  return {StructPointer(0, 3, 1), kProtocolVersion | (std::uint64_t{discriminant} << 16), 1, 2};
}

/// The discriminant of a body that is encoded as ours.
std::uint16_t DiscriminantOf(const Body& body) {
  const auto bytes = Encode({.body = body});
  std::uint16_t value = 0;
  std::memcpy(&value, bytes->data() + 16 + 2, sizeof value);
  return value;
}

Status DecodeStatus(const std::string& bytes) { return Decode(AsBytes(bytes)).status(); }

TEST(HostileMessage, TruncationAtEveryByteIsRefused) {
  for (std::size_t body = 0; body < kBodies; ++body) {
    const auto bytes = Encode(Filled(body, 3));
    ASSERT_TRUE(bytes.ok());
    for (std::size_t length = 0; length < bytes->size(); ++length) {
      EXPECT_EQ(DecodeStatus(bytes->substr(0, length)).code(), absl::StatusCode::kInvalidArgument)
          << BodyName(Filled(body, 3).body) << " cut at " << length;
    }
  }
}

TEST(HostileMessage, TrailingBytesAreRefused) {
  auto bytes = Encode({.body = Heartbeat{1}});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(DecodeStatus(*bytes + std::string(8, '\0')).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeStatus(*bytes + "x").code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostileMessage, TooManySegmentsAreRefusedBeforeTheyAreRead) {
  for (const std::uint32_t last : {kMaxSegments, 511u, 0xFFFFFFFFu}) {
    std::string bytes(64, '\0');
    std::memcpy(bytes.data(), &last, sizeof last);
    EXPECT_EQ(DecodeStatus(bytes).code(), absl::StatusCode::kInvalidArgument) << last;
  }
}

TEST(HostileMessage, SegmentSizesThatOverflowAreRefused) {
  std::string bytes(64, '\0');
  const std::uint32_t table[5] = {3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 2};
  std::memcpy(bytes.data(), table, sizeof table);
  EXPECT_EQ(DecodeStatus(bytes).code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostileMessage, FrameBeyondTheLimitIsRefused) {
  EXPECT_EQ(DecodeStatus(std::string(kMaxMessageBytes + 8, '\0')).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HostileMessage, UnknownKindIsAnErrorNotADefault) {
  for (const unsigned kind : {unsigned{kBodies}, 1000u, 65535u}) {
    auto words = EnvelopeWords(static_cast<std::uint16_t>(kind));
    words.push_back(0);
    EXPECT_EQ(DecodeStatus(Frame(words)).code(), absl::StatusCode::kInvalidArgument) << kind;
  }
}

TEST(HostileMessage, UnknownEnumerantIsAnErrorNotADefault) {
  // ResultFetched {task, state, result}: one data word (state), two pointers.
  auto words = EnvelopeWords(DiscriminantOf(ResultFetched{}));
  words.push_back(StructPointer(0, 1, 2));
  words.insert(words.end(), {6, 0, 0});
  EXPECT_TRUE(DecodeStatus(Frame(words)).ok()) << Describe(DecodeStatus(Frame(words)));
  words[5] = 7;
  EXPECT_EQ(DecodeStatus(Frame(words)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostileMessage, DigestOfAnotherLengthIsRefused) {
  // TrainerAttached {schedulerIncarnation, planDigest, geometry}
  auto words = EnvelopeWords(DiscriminantOf(TrainerAttached{}));
  words.push_back(StructPointer(0, 1, 2));
  words.insert(words.end(), {1, ListPointer(1, 2, 8), 0, 0x0807060504030201});
  EXPECT_EQ(DecodeStatus(Frame(words)).code(), absl::StatusCode::kInvalidArgument);
}

/// LeasesRevoked with a list of `count` structs of no size at all: 16 bytes that ask for gigabytes.
TEST(HostileMessage, ListOfNothingDoesNotBecomeMemory) {
  for (const std::uint32_t count : {(1u << 29) - 1, kMaxListItems + 1, 200'000u}) {
    auto words = EnvelopeWords(DiscriminantOf(LeasesRevoked{}));
    words.push_back(StructPointer(0, 0, 1));
    words.push_back(ListPointer(0, 7, 0));
    words.push_back(static_cast<std::uint64_t>(count) << 2);
    EXPECT_EQ(DecodeStatus(Frame(words)).code(), absl::StatusCode::kInvalidArgument) << count;
  }
}

TEST(HostileMessage, ManyListsOfNothingTogetherDoNotBecomeMemory) {
  // JobsDescribed with as many rows of no size as may be: 65,536 JobRows would be 15 MB.
  auto words = EnvelopeWords(DiscriminantOf(JobsDescribed{}));
  words.push_back(StructPointer(0, 0, 1));
  words.push_back(ListPointer(0, 7, 0));
  words.push_back(std::uint64_t{kMaxListItems} << 2);
  EXPECT_EQ(DecodeStatus(Frame(words)).code(), absl::StatusCode::kInvalidArgument);
}

/// A megabyte of list elements that all point at the same half megabyte of text.
TEST(HostileMessage, PointersToTheSameBytesDoNotMultiplyThem) {
  constexpr std::uint32_t kElements = 60'000, kTextBytes = 512u << 10;
  auto words = EnvelopeWords(DiscriminantOf(LeasesGranted{}));
  words.push_back(StructPointer(0, 0, 2));
  words.push_back(ListPointer(1, 7, 9));
  words.push_back(0);
  words.push_back(StructPointer(1, 0, 9));  // tag: one TaskLease of nine pointers
  words.insert(words.end(), 9, 0);
  words[words.size() - 9 + 4] = ListPointer(4, 6, kElements);  // inputs
  const std::size_t first = words.size();
  for (std::uint32_t i = 0; i < kElements; ++i) {
    words.push_back(ListPointer(static_cast<std::int32_t>(kElements - 1 - i), 2, kTextBytes));
  }
  words.insert(words.end(), kTextBytes / 8, 0x4141414141414141);
  ASSERT_EQ(words.size(), first + kElements + kTextBytes / 8);
  EXPECT_EQ(DecodeStatus(Frame(words)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostileMessage, StructThatPointsAtItselfEnds) {
  auto words = EnvelopeWords(DiscriminantOf(RequestFailed{}));
  words.push_back(StructPointer(-1, 0, 1));
  EXPECT_FALSE(DecodeStatus(Frame(words)).ok());
  words.back() = StructPointer(0, 0, 1);
  words.push_back(StructPointer(-1, 1, 1));
  EXPECT_FALSE(DecodeStatus(Frame(words)).ok());
}

TEST(HostileMessage, FarPointersIntoNowhereAreRefused) {
  for (const std::uint64_t pointer : {std::uint64_t{2}, (std::uint64_t{9} << 32) | 2,
                                      (std::uint64_t{1} << 32) | 0xFFFFFFFA, std::uint64_t{6}}) {
    auto words = EnvelopeWords(DiscriminantOf(RequestFailed{}));
    words.push_back(pointer);
    EXPECT_FALSE(DecodeStatus(Frame(words)).ok()) << pointer;
  }
}

TEST(HostileMessage, ADecoderGoesOnAfterEveryRefusal) {
  Decoder decoder;
  const auto good = Encode(Filled(30, 5));
  ASSERT_TRUE(good.ok());
  for (const std::string& bad : {std::string(), std::string(7, 'x'), std::string(800, '\xff'),
                                 good->substr(0, good->size() / 2)}) {
    EXPECT_FALSE(decoder.Decode(AsBytes(bad)).ok());
    EXPECT_TRUE(decoder.Decode(AsBytes(*good)).ok());
  }
}

}  // namespace
}  // namespace patchbay::protocol

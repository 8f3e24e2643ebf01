#include "runtime/wire/protocol/codec.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/runtime/wire/protocol/every_field.h"

namespace patchbay::protocol {
namespace {

using test::Equal;
using test::Filled;
using test::kBodies;

std::string MustEncode(const Envelope& envelope) {
  auto bytes = Encode(envelope);
  EXPECT_TRUE(bytes.ok()) << Describe(bytes.status());
  return *std::move(bytes);
}

TEST(Codec, EveryMessageComesBackWithEveryField) {
  for (std::size_t body = 0; body < kBodies; ++body) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const Envelope sent = Filled(body, seed);
      SCOPED_TRACE(StrCat(BodyName(sent.body), " seed ", seed));
      const auto received = Decode(AsBytes(MustEncode(sent)));
      ASSERT_TRUE(received.ok()) << Describe(received.status());
      EXPECT_EQ(received->version, sent.version);
      EXPECT_EQ(received->sender_incarnation, sent.sender_incarnation);
      EXPECT_EQ(received->request_id, sent.request_id);
      EXPECT_TRUE(Equal(received->body, sent.body)) << test::TextOf(received->body) << "\nis not\n"
                                                    << test::TextOf(sent.body);
    }
  }
}

TEST(Codec, FieldsHaveTheirNamesInText) {
  EXPECT_EQ(test::TextOf(Body(KillWorker{.index = 3, .worker_incarnation = 7})),
            "{index: 3, worker_incarnation: 7, }");
}

TEST(Codec, EmptyMessagesKeepTheirDefaults) {
  const Envelope sent{.body = SubmitJob{}};
  const auto received = Decode(AsBytes(MustEncode(sent)));
  ASSERT_TRUE(received.ok());
  EXPECT_TRUE(Equal(received->body, sent.body));
}

TEST(Codec, ReusedEncoderGivesTheSameBytesAsAFreshOne) {
  Encoder encoder;
  Decoder decoder;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t body = 0; body < kBodies; ++body) {
      const Envelope sent = Filled(body, 7 + body);
      const auto bytes = encoder.Encode(sent);
      ASSERT_TRUE(bytes.ok());
      EXPECT_EQ(std::string(AsText(*bytes)), MustEncode(sent)) << BodyName(sent.body);
      const auto received = decoder.Decode(*bytes);
      ASSERT_TRUE(received.ok());
      EXPECT_TRUE(Equal(received->body, sent.body));
    }
  }
}

TEST(Codec, MessageThatOutgrowsTheScratchIsStillOneSegment) {
  Encoder encoder;
  ResultFetched large;
  large.result.assign(kMaxInlineResultBytes, 'x');
  for (const Envelope& sent :
       {Envelope{.body = large}, Envelope{.body = Heartbeat{3}}, Envelope{.body = large}}) {
    const auto bytes = encoder.Encode(sent);
    ASSERT_TRUE(bytes.ok());
    std::uint32_t last_segment = 7;
    std::memcpy(&last_segment, bytes->data(), sizeof last_segment);
    EXPECT_EQ(last_segment, 0u);
    const auto received = Decode(*bytes);
    ASSERT_TRUE(received.ok());
    EXPECT_TRUE(Equal(received->body, sent.body));
  }
}

TEST(Codec, MessageBeyondTheLimitIsRefusedBeforeItIsSent) {
  Encoder encoder;
  ResultFetched large;
  large.result.assign(kMaxMessageBytes, 'x');
  EXPECT_EQ(encoder.Encode({.body = large}).status().code(), absl::StatusCode::kResourceExhausted);
  large.result.assign(10 * kMaxMessageBytes, 'x');
  EXPECT_EQ(encoder.Encode({.body = large}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(encoder.Encode({.body = Heartbeat{}}).ok());
}

TEST(Codec, ListBeyondTheLimitIsRefusedBeforeItIsSent) {
  DescribeJobs many;
  many.jobs.resize(kMaxListItems + 1);
  EXPECT_EQ(Encode({.body = many}).status().code(), absl::StatusCode::kResourceExhausted);
  many.jobs.resize(kMaxListItems);
  const auto received = Decode(AsBytes(MustEncode({.body = many})));
  ASSERT_TRUE(received.ok()) << Describe(received.status());
  EXPECT_EQ(std::get<DescribeJobs>(received->body).jobs.size(), kMaxListItems);
}

TEST(Codec, FullListsOfRealMessagesFitTheMemoryBudget) {
  LeasesGranted many;
  TaskLease lease;
  lease.op = "noop";
  many.tasks.assign(20'000, lease);
  const auto received = Decode(AsBytes(MustEncode({.body = many})));
  ASSERT_TRUE(received.ok()) << Describe(received.status());
  TasksFinished finished;
  finished.items.assign(40'000, TasksFinished::Item{});
  const auto outcomes = Decode(AsBytes(MustEncode({.body = finished})));
  ASSERT_TRUE(outcomes.ok()) << Describe(outcomes.status());
}

TEST(Codec, OtherVersionsAreRefusedByNumber) {
  for (const int version : {0, kProtocolVersion + 1, 65535}) {
    Envelope sent{.version = static_cast<std::uint16_t>(version), .body = Heartbeat{}};
    const auto received = Decode(AsBytes(MustEncode(sent)));
    EXPECT_EQ(received.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(
        MessageOf(received.status())
            .find(StrCat("version ", version, ", this program knows 1; run the same release")),
        std::string_view::npos)
        << received.status();
  }
}

TEST(Codec, RefusedVersionCanBeAnswered) {
  Decoder decoder;
  const std::string other = MustEncode({.version = 2, .request_id = 77, .body = Heartbeat{}});
  EXPECT_FALSE(decoder.Decode(AsBytes(other)).ok());
  EXPECT_EQ(decoder.refused_request_id(), 77u);
  EXPECT_TRUE(decoder.Decode(AsBytes(MustEncode({.request_id = 5, .body = Heartbeat{}}))).ok());
  EXPECT_EQ(decoder.refused_request_id(), 0u);
}

/// The wire form of released messages never changes: these bytes are what version 1 sends.
TEST(Codec, GoldenBytesOfVersionOne) {
  const auto hex = [](const std::string& bytes) {
    std::string out;
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
    return out;
  };
  EXPECT_EQ(hex(MustEncode({.sender_incarnation = 0x1122334455667788,
                            .request_id = 9,
                            .body = Heartbeat{.progress = 0xABCD}})),
            "000000000a0000000000000003000100010000000000000088776655443322110900000000000000"
            "0000000004000100cdab00000000000000000000000000000000000000000000000000000000000000"
            "00000000000000");
  EXPECT_EQ(
      hex(MustEncode({.sender_incarnation = 1, .request_id = 2, .body = CancelJob{.job = 5}})),
      "00000000060000000000000003000100010024000000000001000000000000000200000000000000"
      "00000000010000000500000000000000");
}

/// Where the fields of every message lie, as a hash over all of them filled alike. It changes when
/// a message or field is added; check then that nothing else changed.
TEST(Codec, EveryMessageKeepsItsLayout) {
  Sha256 all;
  for (std::size_t body = 0; body < kBodies; ++body) {
    const std::string bytes = MustEncode(Filled(body, 1));
    EXPECT_EQ(bytes.size() % 8, 0u);
    all.Update(bytes);
  }
  EXPECT_EQ(all.Finish().Hex(), "59b089a839de2cb380d8d6ba7e4042785e0d260e2279d56d4f387a29eae09036");
}

TEST(Codec, NamesAreThoseOfTheSpecification) {
  EXPECT_STREQ(BodyName(Heartbeat{}), "Heartbeat");
  EXPECT_STREQ(BodyName(ShuttingDown{}), "ShuttingDown");
}

}  // namespace
}  // namespace patchbay::protocol

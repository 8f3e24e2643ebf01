// A stranger, a scanner or a broken peer on the TLS port is dropped and counted. The stream goes
// on.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "gtest/gtest.h"
#include "runtime/core/hash.h"
#include "runtime/wire/data/little_endian.h"
#include "runtime/wire/data/remote_delivery.h"
#include "runtime/wire/data/sockets.h"
#include "runtime/wire/data/tls_listener.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

std::int64_t Soon() { return SteadyNowMs() + kPatience; }

std::vector<std::byte> BytesOf(std::string_view text) {
  const auto bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

/// Everything the peer sends until it ends the connection.
std::vector<std::byte> ReadUntilEnd(int socket) {
  std::vector<std::byte> all;
  std::array<std::byte, 4096> buffer{};
  for (;;) {
    if (!AwaitSocket(socket, POLLIN, Soon()).ok()) return all;
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got <= 0) return all;
    all.insert(all.end(), buffer.begin(), buffer.begin() + got);
  }
}

class TlsDelivery : public ::testing::Test {
 protected:
  void Start(std::int64_t proof_ms = 5'000, std::int64_t shard_ms = 15'000) {
    ring_ = MakeRing(SmallOptions());
    RemoteReceiver::Options options{Loopback(), SecretOf(1), kTrainer, proof_ms, shard_ms};
    auto started = RemoteReceiver::Start(*ring_, options);
    ASSERT_TRUE(started.ok()) << started.status();
    receiver_ = std::move(*started);
    address_ = ParseTlsAddress(*AddressUnder(kTlsScheme, receiver_->address()))->host_port;
  }
  void SetUp() override { Start(); }

  static Network Loopback() {
    Network network;
    network.policy = NetworkPolicy::kTls;
    network.address = "127.0.0.1";
    return network;
  }
  UniqueFd Connect() const {
    auto socket = ConnectTcp(address_, Soon());
    EXPECT_TRUE(socket.ok()) << socket.status();
    return std::move(*socket);
  }
  /// A connection with this key, proven as far as the sender can tell; null when it was refused.
  std::unique_ptr<TlsChannel> Prove(const TrainerIdentity& trainer = kTrainer,
                                    const StreamSecret& secret = SecretOf(1)) const {
    auto context = TlsContext::Make(TlsContext::Side::kSender, *DeriveTlsKey(secret, trainer));
    auto channel = TlsChannel::Make(*context, Connect());
    for (;;) {
      const auto proven = (*channel)->Handshake();
      if (!proven.ok()) return nullptr;
      if (*proven) return std::move(*channel);
      if (!AwaitSocket((*channel)->socket(), (*channel)->wait_events(), Soon()).ok())
        return nullptr;
    }
  }
  /// Sends over a separate connection and ends it, with close_notify when `announced`.
  void SendAndEnd(std::span<const std::byte> bytes, bool announced) const {
    auto context =
        TlsContext::Make(TlsContext::Side::kSender, *DeriveTlsKey(SecretOf(1), kTrainer));
    const UniqueFd socket = Connect();
    fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new((*context)->ctx()), &SSL_free);
    SSL_set_fd(ssl.get(), socket.get());
    ASSERT_EQ(SSL_connect(ssl.get()), 1);
    ASSERT_EQ(SSL_write(ssl.get(), bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
    if (announced) {
      EXPECT_EQ(SSL_shutdown(ssl.get()), 0) << "sent, and not answered yet";
    }
  }
  static std::vector<std::byte> MessageOf(ShardHeader header, int value) {
    std::vector<std::byte> bytes(kShardHeaderBytes);
    for (std::size_t i = 0; i < header.arrays; ++i) {
      const std::size_t size = header.grant.count * SmallLayout().arrays[i].PatchBytes();
      const std::vector<std::byte> array(size, static_cast<std::byte>(value));
      header.crc32c[i] = Crc32c(array);
      bytes.insert(bytes.end(), array.begin(), array.end());
    }
    header.array = kEveryArray;
    EncodeShardHeader(header, SecretOf(1), std::span(bytes).first<kShardHeaderBytes>());
    return bytes;
  }
  static Status AnswerOf(TlsChannel& channel, const ShardHeader& header) {
    std::array<std::byte, kShardAnswerBytes> answer;
    PB_RETURN_IF_ERROR(channel.Read(answer, Soon()));
    return DecodeShardAnswer(answer, header.lease);
  }
  void AwaitDropped(std::uint64_t count) const {
    EXPECT_TRUE(Comes("further dropped connection",
                      [&] { return receiver_->connections_dropped() >= count; }));
    EXPECT_EQ(receiver_->connections_dropped(), count);
  }
  /// How often a peer of this address was turned away for a reason that contains `reason`.
  std::uint64_t TimesNamed(std::string_view reason) const {
    std::uint64_t times = 0;
    for (const DroppedPeer& peer : receiver_->dropped_peers()) {
      EXPECT_EQ(peer.address, "127.0.0.1");
      if (peer.reason.find(reason) != std::string::npos) times += peer.times;
    }
    return times;
  }
  /// A whole batch from an honest sender: the earlier events have changed nothing.
  void ExpectTheStreamGoesOn() {
    auto sender = RemoteSender::Start({Loopback(), kPatience});
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      const ShardHeader header = HeaderOf({0, 0}, shard, 0, 1, shard + 100);
      std::vector<std::vector<std::byte>> arrays;
      std::vector<std::span<const std::byte>> payload;
      for (const ArrayLayout& array : SmallLayout().arrays) {
        arrays.emplace_back(header.grant.count * array.PatchBytes(), std::byte{0x44});
      }
      payload.assign(arrays.begin(), arrays.end());
      const Status sent =
          (*sender)->Send({receiver_->address(), SecretOf(1), kStream, 0}, header, payload);
      EXPECT_TRUE(sent.ok()) << sent;
    }
    const auto batch = ring_->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_TRUE(AllPatchesAre(*batch, 0x44));
    EXPECT_EQ(ring_->stats().shards_counted, 2u);
  }

  std::unique_ptr<Ring> ring_;
  std::unique_ptr<RemoteReceiver> receiver_;
  std::string address_;
};

TEST(TlsKey, IsOfOneSecretAndOneLifeOfOneTrainer) {
  const TlsKey key = *DeriveTlsKey(SecretOf(1), kTrainer);
  EXPECT_EQ(key.identity, "77|0|5");
  EXPECT_EQ(key.bytes, DeriveTlsKey(SecretOf(1), kTrainer)->bytes);
  EXPECT_NE(key.bytes, DeriveTlsKey(SecretOf(2), kTrainer)->bytes);
  for (const TrainerIdentity& other :
       {TrainerIdentity{kStream + 1, 0, 5}, TrainerIdentity{kStream, 1, 5},
        TrainerIdentity{kStream, 0, 6}, TrainerIdentity{7, 70, 5}}) {
    EXPECT_NE(key.bytes, DeriveTlsKey(SecretOf(1), other)->bytes) << other.Text();
  }
}

/// HKDF of RFC 5869 written out over HMAC: extract with the salt, expand to one block.
TEST(TlsKey, IsHkdfSha256) {
  const Digest extracted =
      HmacSha256(AsBytes("patchbay data path, tls 1.3 external psk"), AsText(SecretOf(1)));
  const Digest expanded =
      HmacSha256(std::as_bytes(std::span(extracted.bytes)), kTrainer.Text() + '\x01');
  const TlsKey key = *DeriveTlsKey(SecretOf(1), kTrainer);
  EXPECT_TRUE(std::equal(key.bytes.begin(), key.bytes.end(), expanded.bytes.begin()));
}

TEST(ShardAnswer, SaysWhatBecameOfTheShard) {
  const LeaseNumber lease{1, 9};
  EXPECT_TRUE(DecodeShardAnswer(EncodeShardAnswer(lease, absl::OkStatus()), lease).ok());
  const auto round = [&](const Status& outcome) {
    return DecodeShardAnswer(EncodeShardAnswer(lease, outcome), lease).code();
  };
  EXPECT_EQ(round(absl::FailedPreconditionError("x")), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(round(absl::AlreadyExistsError("x")), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(round(absl::DataLossError("x")), absl::StatusCode::kUnavailable)
      << "a damaged shard is made again; its input is not bad";
  EXPECT_EQ(round(absl::InvalidArgumentError("x")), absl::StatusCode::kUnavailable);
  auto other = EncodeShardAnswer({1, 8}, absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(DecodeShardAnswer(other, lease)));
  other.fill(std::byte{0});
  EXPECT_TRUE(absl::IsUnavailable(DecodeShardAnswer(other, lease)));
}

TEST(TlsAddress, IsAHostAPortAndAnIncarnation) {
  const auto parsed = ParseTlsAddress("[fd00::7]:4711/18446744073709551615");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->host_port, "[fd00::7]:4711");
  EXPECT_EQ(parsed->incarnation, UINT64_MAX);
  for (const char* text :
       {"", "10.0.0.7:4711", "10.0.0.7:4711/", "10.0.0.7:4711/x", "10.0.0.7/5", "10.0.0.7:4711/5/6",
        "trainer:4711/5", "10.0.0.7:4711/99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTlsAddress(text).status())) << text;
  }
}

TEST_F(TlsDelivery, WrongSecretStreamRankAndIncarnationAreRefused) {
  EXPECT_EQ(Prove(kTrainer, SecretOf(2)), nullptr);
  for (const TrainerIdentity& other :
       {TrainerIdentity{kStream + 1, 0, 5}, TrainerIdentity{kStream, 1, 5},
        TrainerIdentity{kStream, 0, 6}}) {
    EXPECT_EQ(Prove(other), nullptr) << other.Text();
  }
  AwaitDropped(4);
  EXPECT_EQ(TimesNamed("tls handshake"), 4u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, GarbageOnThePortIsDropped) {
  const std::vector<std::string> sent = {
      std::string(17, '\0'), "GET / HTTP/1.1\r\n\r\n", std::string("\x16\x03\x01\xff\xff", 5),
      std::string("\x15\x03\x03\x00\x02\x02\x28", 7), std::string(70'000, '\xff')};
  for (const std::string& bytes : sent) {
    const UniqueFd socket = Connect();
    send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(socket.get(), SHUT_WR);
    ReadUntilEnd(socket.get());
  }
  AwaitDropped(sent.size());
  EXPECT_EQ(TimesNamed("tls handshake"), sent.size());
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, SilentConnectionsAreDroppedAfterTheirDeadline) {
  receiver_.reset();
  Start(50);
  const UniqueFd silent = Connect(), dripping = Connect();
  send(dripping.get(), "\x16", 1, MSG_NOSIGNAL);
  ReadUntilEnd(silent.get());
  ReadUntilEnd(dripping.get());
  AwaitDropped(2);
  EXPECT_EQ(TimesNamed("not proven the key in time"), 2u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, ACrowdThatHoldsConnectionsOpenKeepsNoSenderOut) {
  std::vector<UniqueFd> crowd;
  for (std::size_t i = 0; i < 3 * kMaxUnproven; ++i) crowd.push_back(Connect());
  ExpectTheStreamGoesOn();
  EXPECT_GE(receiver_->connections_dropped(), 2 * kMaxUnproven);
  const std::vector<DroppedPeer> named = receiver_->dropped_peers();
  ASSERT_FALSE(named.empty());
  EXPECT_EQ(named[0].address, "127.0.0.1");
  EXPECT_NE(named[0].reason.find("too many"), std::string::npos) << named[0].reason;
  EXPECT_GE(named[0].times, kMaxUnproven);
}

/// A relay that records the sender's bytes.
std::vector<std::byte> Overhear(int from, int to, const std::function<bool()>& done) {
  std::vector<std::byte> heard;
  std::array<std::byte, 16384> buffer{};
  while (!done()) {
    pollfd watched[] = {{from, POLLIN, 0}, {to, POLLIN, 0}};
    if (poll(watched, 2, 10) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (watched[i].revents == 0) continue;
      const ssize_t got = recv(watched[i].fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) return heard;
      if (i == 0) heard.insert(heard.end(), buffer.begin(), buffer.begin() + got);
      send(watched[1 - i].fd, buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
    }
  }
  return heard;
}

/// The bytes of a sender's connection that brought shard 1, as a listener on the wire has them.
std::vector<std::byte> RecordedConnection(const std::string& trainer) {
  std::string relay;
  const UniqueFd listener = std::move(*ListenTcp("127.0.0.1", {}, &relay));
  std::atomic<bool> sent = false;
  std::thread sending([&] {
    Network network;
    network.policy = NetworkPolicy::kTls;
    auto sender = RemoteSender::Start({network, kPatience});
    const ShardHeader header = HeaderOf({0, 1}, 0, 1, 1, 1);
    const std::vector<std::byte> image(header.grant.count * kImageBytes, std::byte{0x5a});
    const std::vector<std::byte> ordinal(header.grant.count * 8, std::byte{0x5a});
    const std::array<std::span<const std::byte>, 2> payload = {image, ordinal};
    EXPECT_TRUE(
        (*sender)
            ->Send({StrCat(kTlsScheme, relay, "/5"), SecretOf(1), kStream, 0}, header, payload)
            .ok());
    sent = true;
  });
  EXPECT_TRUE(AwaitSocket(listener.get(), POLLIN, Soon()).ok());
  const UniqueFd from = std::move(*AcceptTcp(listener.get()));
  const UniqueFd to = std::move(*ConnectTcp(trainer, Soon()));
  auto heard = Overhear(from.get(), to.get(), [&sent] { return sent.load(); });
  sending.join();
  return heard;
}

TEST_F(TlsDelivery, TheWireShowsNoPixelAndAReplayedConnectionIsDropped) {
  const std::vector<std::byte> heard = RecordedConnection(address_);
  ASSERT_GT(heard.size(), 2 * static_cast<std::size_t>(kImageBytes));
  const std::vector<std::byte> pixels(16, std::byte{0x5a}), magic = BytesOf("PSHR");
  EXPECT_EQ(std::search(heard.begin(), heard.end(), pixels.begin(), pixels.end()), heard.end());
  EXPECT_EQ(std::search(heard.begin(), heard.end(), magic.begin(), magic.end()), heard.end());
  const auto identity = BytesOf(kTrainer.Text());
  EXPECT_NE(std::search(heard.begin(), heard.end(), identity.begin(), identity.end()), heard.end())
      << "the search would find what is there";
  const std::uint64_t counted = ring_->stats().shards_counted;
  const UniqueFd replay = Connect();
  send(replay.get(), heard.data(), heard.size(), MSG_NOSIGNAL);
  ReadUntilEnd(replay.get());
  AwaitDropped(1);
  EXPECT_EQ(TimesNamed("tls handshake"), 1u);
  EXPECT_EQ(ring_->stats().shards_counted, counted);
  EXPECT_EQ(counted, 1u);
}

TEST_F(TlsDelivery, FlippedBytesEndTheConnectionAndNothingCounts) {
  auto channel = Prove();
  ASSERT_NE(channel, nullptr);
  // A record of the right type and length that no key made.
  std::string forged("\x17\x03\x03\x00\x80", 5);
  forged.append(128, '\x42');
  send(channel->socket(), forged.data(), forged.size(), MSG_NOSIGNAL);
  ReadUntilEnd(channel->socket());
  EXPECT_EQ(ring_->stats().shards_counted, 0u);
  AwaitDropped(1);
  EXPECT_EQ(TimesNamed("read over tls: decryption failed"), 1u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, AnEndInsideAShardVoidsItHoweverItIsAnnounced) {
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  const std::vector<std::byte> message = MessageOf(header, 7);
  std::uint64_t ended = 0;
  for (const std::size_t part : {std::size_t{10}, kShardHeaderBytes, message.size() - 1}) {
    for (const bool announced : {false, true}) {
      SendAndEnd(std::span(message).first(part), announced);
      AwaitDropped(++ended);
      EXPECT_FALSE(ring_->Receiving(header.shard, header.lease));
    }
  }
  EXPECT_EQ(TimesNamed("ended inside a shard"), ended);
  EXPECT_EQ(ring_->stats().shards_counted, 0u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, ARecordThatIsCutShortVoidsItsShard) {
  auto channel = Prove();
  ASSERT_NE(channel, nullptr);
  const std::string begun("\x17\x03\x03\x00\x80half", 9);
  send(channel->socket(), begun.data(), begun.size(), MSG_NOSIGNAL);
  channel.reset();  // closes
  AwaitDropped(1);
  EXPECT_EQ(TimesNamed("ended inside a shard"), 1u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, AnEndBetweenTwoShardsIsNobodysFault) {
  for (const bool announced : {false, true}) {
    const ShardHeader header = HeaderOf({0, 1}, announced, 1, 1, 1);
    SendAndEnd(MessageOf(header, 7), announced);
  }
  ASSERT_TRUE(Comes("second counted shard", [&] { return ring_->stats().shards_counted >= 2; }));
  EXPECT_EQ(receiver_->connections_dropped(), 0u);
}

TEST_F(TlsDelivery, ASenderWhoseLeaseIsVoidIsToldAndItsConnectionGoesOn) {
  auto channel = Prove();
  ASSERT_NE(channel, nullptr);
  const ShardHeader late = HeaderOf({0, 0}, 0, 0, 1, 1);
  EXPECT_TRUE(ring_->Evacuate(late.shard, late.grant).ok());
  ring_->Fence(late.shard, late.lease);
  ASSERT_TRUE(channel->Write(MessageOf(late, 7), Soon()).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(AnswerOf(*channel, late)));
  EXPECT_GE(ring_->stats().shards_refused, 1u);
  const ShardHeader live = HeaderOf({0, 1}, 0, 1, 1, 2);
  ASSERT_TRUE(channel->Write(MessageOf(live, 8), Soon()).ok());
  EXPECT_TRUE(AnswerOf(*channel, live).ok());
  ASSERT_TRUE(channel->Write(MessageOf(live, 9), Soon()).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(AnswerOf(*channel, live))) << "it counts once";
  EXPECT_EQ(ring_->stats().shards_counted, 1u);
  EXPECT_EQ(receiver_->connections_dropped(), 0u);
  EXPECT_EQ(TimesNamed("the lease was void"), 1u);
}

TEST_F(TlsDelivery, AShardWithAWrongChecksumDoesNotCountAndItsConnectionGoesOn) {
  auto channel = Prove();
  ASSERT_NE(channel, nullptr);
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  std::vector<std::byte> message = MessageOf(header, 7);
  message.back() ^= std::byte{1};
  ASSERT_TRUE(channel->Write(message, Soon()).ok());
  EXPECT_TRUE(absl::IsUnavailable(AnswerOf(*channel, header)));
  EXPECT_EQ(TimesNamed("checksum"), 1u);
  EXPECT_EQ(ring_->stats().shards_counted, 0u);
  const ShardHeader again = HeaderOf({0, 0}, 0, 0, 1, 2);
  ASSERT_TRUE(channel->Write(MessageOf(again, 7), Soon()).ok());
  EXPECT_TRUE(AnswerOf(*channel, again).ok());
  EXPECT_EQ(ring_->stats().shards_counted, 1u);
}

TEST_F(TlsDelivery, AHeaderThatDisagreesWithTheLayoutOrNeverEndsIsDropped) {
  std::vector<ShardHeader> wrong(5, HeaderOf({0, 0}, 0, 0, 1, 1));
  wrong[0].stream = kStream + 1;
  wrong[1].arrays = 1;
  wrong[2].grant.count = 5;  // more than the 4 of a batch
  wrong[3].grant.count = 0;
  wrong[4].landing = Landing::kDevice;
  std::uint64_t dropped = 0;
  for (const ShardHeader& header : wrong) {
    auto channel = Prove();
    ASSERT_NE(channel, nullptr);
    channel->Write(MessageOf(header, 7), Soon()).IgnoreError();
    EXPECT_FALSE(AnswerOf(*channel, header).ok());
    AwaitDropped(++dropped);
  }
  auto endless = Prove();
  ASSERT_NE(endless, nullptr);
  const std::vector<std::byte> bytes(1 << 20, std::byte{0x50});
  while (endless->Write(bytes, Soon()).ok()) {
  }
  AwaitDropped(++dropped);
  EXPECT_EQ(ring_->stats().shards_refused, dropped);
  EXPECT_EQ(TimesNamed("does not match the layout of this stream"), wrong.size());
  EXPECT_EQ(TimesNamed("wrong magic number"), 1u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, AShardThatComesByteByByteIsDroppedAfterItsDeadline) {
  receiver_.reset();
  Start(5'000, 100);
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  const std::vector<std::byte> message = MessageOf(header, 7);
  for (const std::size_t part : {std::size_t{1}, kShardHeaderBytes + 1}) {
    auto channel = Prove();
    ASSERT_NE(channel, nullptr);
    ASSERT_TRUE(channel->Write(std::span(message).first(part), Soon()).ok());
    ReadUntilEnd(channel->socket());
    EXPECT_FALSE(ring_->Receiving(header.shard, header.lease)) << "the range is free again";
  }
  AwaitDropped(2);
  EXPECT_EQ(TimesNamed("read over tls: "), 2u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, ASlowShardBlocksItsOwnConnectionOnly) {
  const ShardHeader header = HeaderOf({0, 1}, 0, 1, 1, 1);
  auto slow = Prove();
  ASSERT_NE(slow, nullptr);
  const std::vector<std::byte> message = MessageOf(header, 7);
  ASSERT_TRUE(slow->Write(std::span(message).first(kShardHeaderBytes + 5), Soon()).ok());
  ASSERT_TRUE(
      Comes("transfer that runs", [&] { return ring_->Receiving(header.shard, header.lease); }));
  ExpectTheStreamGoesOn();
  ASSERT_TRUE(slow->Write(std::span(message).subspan(kShardHeaderBytes + 5), Soon()).ok());
  EXPECT_TRUE(AnswerOf(*slow, header).ok());
  EXPECT_GT(ring_->stats().stages.transfer_us, 0u) << "a batch of another sender went by meanwhile";
}

TEST_F(TlsDelivery, KeysChangeWhileAStreamRuns) {
  auto context = TlsContext::Make(TlsContext::Side::kSender, *DeriveTlsKey(SecretOf(1), kTrainer));
  auto channel = TlsChannel::Make(*context, Connect(), 3);
  for (;;) {
    const auto proven = (*channel)->Handshake();
    ASSERT_TRUE(proven.ok()) << proven.status();
    if (*proven) break;
    ASSERT_TRUE(AwaitSocket((*channel)->socket(), (*channel)->wait_events(), Soon()).ok());
  }
  for (std::uint64_t lease = 1; lease <= 8; ++lease) {
    const ShardHeader header =
        HeaderOf({0, 0}, 0, 0, 9, lease);  // a dead generation: many may come
    ASSERT_TRUE((*channel)->Write(MessageOf(header, 7), Soon()).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(AnswerOf(**channel, header)));
  }
  EXPECT_GE((*channel)->key_updates(), 2u);
  ExpectTheStreamGoesOn();
}

TEST_F(TlsDelivery, ATrainerThatIsBackAtItsAddressIsReachedAtOnce) {
  auto sender = RemoteSender::Start({Loopback(), kPatience});
  const RemoteTarget target{receiver_->address(), SecretOf(1), kStream, 0};
  const auto send = [&](std::uint32_t shard) {
    const ShardHeader header = HeaderOf({0, 1}, shard, 1, 1, shard + 1);
    const std::vector<std::byte> image(header.grant.count * kImageBytes),
        ordinal(header.grant.count * 8);
    const std::array<std::span<const std::byte>, 2> payload = {image, ordinal};
    return (*sender)->Send(target, header, payload);
  };
  ASSERT_TRUE(send(0).ok());
  receiver_.reset();
  RemoteReceiver::Options again{Loopback(), SecretOf(1), kTrainer};
  const auto port = static_cast<std::uint16_t>(std::stoi(address_.substr(address_.find(':') + 1)));
  again.network.ports = {port, port};
  receiver_ = std::move(*RemoteReceiver::Start(*ring_, again));
  const Status sent = send(1);
  EXPECT_TRUE(sent.ok()) << sent;
}

/// A machine in the middle without the key: it has a certificate instead.
TEST(TlsSender, SendsNothingToAPeerThatDoesNotKnowTheKey) {
  std::string address;
  const UniqueFd listener = std::move(*ListenTcp("127.0.0.1", {}, &address));
  std::thread impostor([&] {
    const auto key = *DeriveTlsKey(SecretOf(9), kTrainer);
    auto context = TlsContext::Make(TlsContext::Side::kTrainer, key);
    EXPECT_TRUE(AwaitSocket(listener.get(), POLLIN, Soon()).ok());
    auto channel = TlsChannel::Make(*context, std::move(*AcceptTcp(listener.get())));
    for (;;) {
      const auto proven = (*channel)->Handshake();
      EXPECT_FALSE(proven.ok() && *proven);
      if (!proven.ok()) return;
      if (!AwaitSocket((*channel)->socket(), (*channel)->wait_events(), Soon()).ok()) return;
    }
  });
  Network network;
  network.policy = NetworkPolicy::kTls;
  auto sender = RemoteSender::Start({network, kPatience});
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  const std::vector<std::byte> image(header.grant.count * kImageBytes),
      ordinal(header.grant.count * 8);
  const std::array<std::span<const std::byte>, 2> payload = {image, ordinal};
  EXPECT_TRUE(absl::IsUnavailable((*sender)->Send(
      {StrCat(kTlsScheme, address, "/5"), SecretOf(1), kStream, 0}, header, payload)));
  impostor.join();
}

TEST(TlsListener, ListensInTheRangeOfPortsAndOverIpv6) {
  auto context = TlsContext::Make(TlsContext::Side::kTrainer, *DeriveTlsKey(SecretOf(1), kTrainer));
  std::string taken;
  const UniqueFd holder = std::move(*ListenTcp("127.0.0.1", {}, &taken));
  const auto port = static_cast<std::uint16_t>(std::stoi(taken.substr(taken.find(':') + 1)));
  TlsListener::Options options;
  options.address = "127.0.0.1";
  options.ports = {port, port};
  DroppedPeers dropped;
  const auto none = TlsListener::Open(
      options, *context, [](auto) {}, dropped);
  EXPECT_TRUE(absl::IsResourceExhausted(none.status())) << none.status();
  EXPECT_NE(none.status().message().find(StrCat(port)), std::string::npos);
  options = {};
  options.address = "::1";
  const auto v6 = TlsListener::Open(
      options, *context, [](auto) {}, dropped);
  if (!v6.ok()) GTEST_SKIP() << "this machine has no IPv6: " << v6.status();
  EXPECT_TRUE((*v6)->address().starts_with("[::1]:")) << (*v6)->address();
  EXPECT_TRUE(ConnectTcp((*v6)->address(), Soon()).ok());
}

}  // namespace
}  // namespace patchbay::data

// The peers that get in, and the harm that the others can do to them.
#include <random>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/os/file.h"
#include "tests/runtime/wire/control/control_fixture.h"

namespace patchbay::control {
namespace {

class AdmissionToTheServer : public ControlFixture {
 protected:
  std::uint64_t TimesDropped(std::string_view address, std::string_view reason) const {
    for (const DroppedPeer& peer : server_->dropped_peers()) {
      if (peer.address == address && peer.reason == reason) return peer.times;
    }
    return 0;
  }
};

/// An unknown key.
KeyFile Stranger() {
  KeyFile key;
  key.pair = KeyPair::Generate();
  return key;
}

/// A TCP connection that says nothing by itself.
UniqueFd RawTcp(const std::string& address) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

bool HasBytes(int fd) {
  char byte = 0;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

TEST_F(AdmissionToTheServer, UnknownKeyIsRefusedAndSaid) {
  MakeKey("ann");
  KeyFile stranger = MakeKey("eve");
  known_.pop_back();
  StartServer();
  const auto session = Open(stranger);
  ASSERT_TRUE(Wait([&] { return absl::IsPermissionDenied(session->state()); }));
  EXPECT_NE(MessageOf(session->state()).find("key is unknown or was revoked"),
            std::string_view::npos);
  const auto answer = Ask(*session, protocol::Heartbeat{}, 200);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(received_.empty());
  EXPECT_EQ(server_->counters().accepted, 0u);
  EXPECT_GE(server_->counters().refused_keys, 1u);
  EXPECT_GE(TimesDropped("127.0.0.1", "its key is not known"), 1u);
}

TEST_F(AdmissionToTheServer, HundredsOfWrongKeysAreAllRefused) {
  constexpr std::uint64_t kStrangers = 300;
  const KeyFile ann = MakeKey("ann");
  StartServer();
  AnswerEverything();
  std::vector<zmq::socket_t> strangers;
  for (std::uint64_t i = 0; i < kStrangers; ++i) {
    strangers.push_back(RawCurveDealer(Stranger()));
    strangers.back().connect(address_);
    strangers.back().send(zmq::str_buffer("hello"), zmq::send_flags::dontwait);
  }
  ASSERT_TRUE(Wait([&] { return server_->counters().refused_keys >= kStrangers; }));
  EXPECT_TRUE(received_.empty());
  EXPECT_EQ(server_->counters().accepted, 0u);
  EXPECT_TRUE(Ask(*Open(ann), protocol::Heartbeat{}).ok());
}

TEST_F(AdmissionToTheServer, RefusedKeyGetsInOnceItIsKnown) {
  const KeyFile late = MakeKey("late");
  const auto all = known_;
  known_.clear();
  StartServer();
  AnswerEverything();
  const auto session = Open(late);
  ASSERT_TRUE(Wait([&] { return absl::IsPermissionDenied(session->state()); }));
  known_ = all;
  server_->ReplaceKeys(Table());
  EXPECT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
}

TEST_F(AdmissionToTheServer, RevokedKeyIsRefused) {
  const KeyFile key = MakeKey("ann");
  known_[0].revoked = true;
  StartServer();
  const auto session = Open(key);
  EXPECT_TRUE(Wait([&] { return absl::IsPermissionDenied(session->state()); }));
  EXPECT_EQ(server_->counters().accepted, 0u);
  EXPECT_GE(TimesDropped("127.0.0.1", "its key, ann, was revoked"), 1u);
}

TEST_F(AdmissionToTheServer, RevocationCutsTheLiveSessionAndNoOther) {
  const KeyFile ann = MakeKey("ann"), bob = MakeKey("bob");
  StartServer();
  AnswerEverything();
  const auto anns = Open(ann), bobs = Open(bob);
  ASSERT_TRUE(Ask(*anns, protocol::Heartbeat{}).ok());
  ASSERT_TRUE(Ask(*bobs, protocol::Heartbeat{}).ok());
  const PeerId annsId = received_[0].peer.id;
  known_[0].revoked = true;
  server_->ReplaceKeys(Table());
  ASSERT_TRUE(Wait([&] { return !gone_.empty() && !anns->connected(); }));
  EXPECT_EQ(gone_, std::vector<PeerId>{annsId});
  const std::size_t before = received_.size();
  ASSERT_TRUE(Wait([&] { return absl::IsPermissionDenied(anns->state()); }));
  EXPECT_EQ(Ask(*anns, protocol::Heartbeat{}, 200).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(received_.size(), before);
  EXPECT_TRUE(Ask(*bobs, protocol::Heartbeat{}).ok());
}

TEST_F(AdmissionToTheServer, ChangedRoleEndsTheSessionUntilItComesBackWithTheNewOne) {
  const KeyFile key = MakeKey("ann", Role::kOperator);
  StartServer();
  AnswerEverything();
  const auto session = Open(key);
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  known_[0].role = Role::kTrainer;
  server_->ReplaceKeys(Table());
  ASSERT_TRUE(Wait([&] { return !gone_.empty(); }));
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  EXPECT_EQ(received_.back().peer.role, Role::kTrainer);
}

TEST_F(AdmissionToTheServer, ChangedFoldersOrAnotherPairUnderItsNameEndTheSession) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  const auto session = Open(key);
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  known_[0].read = {"/data"};
  server_->ReplaceKeys(Table());
  ASSERT_TRUE(Wait([&] { return gone_.size() == 1; }));
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  EXPECT_EQ(received_.back().peer.read_prefixes, std::vector<std::string>{"/data"});
  known_[0].write = {"/out"};
  server_->ReplaceKeys(Table());
  ASSERT_TRUE(Wait([&] { return gone_.size() == 2; }));
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  EXPECT_EQ(received_.back().peer.write_prefixes, std::vector<std::string>{"/out"});
  server_->ReplaceKeys(Table());
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  EXPECT_EQ(gone_.size(), 2u) << "nothing changed";
  known_[0].public_key = KeyPair::Generate().public_key;
  server_->ReplaceKeys(Table());
  EXPECT_TRUE(Wait([&] { return gone_.size() == 3; }));
  EXPECT_TRUE(Wait([&] { return absl::IsPermissionDenied(session->state()); }));
}

TEST_F(AdmissionToTheServer, TakesSoManyPeersAndNoMore) {
  const KeyFile ann = MakeKey("ann"), bob = MakeKey("bob"), eve = MakeKey("eve");
  StartServer(ServerSocket::Options().unread_bytes_max, 2);
  AnswerEverything();
  auto anns = Open(ann);
  const auto bobs = Open(bob), eves = Open(eve);
  ASSERT_TRUE(Ask(*anns, protocol::Heartbeat{}).ok());
  ASSERT_TRUE(Ask(*bobs, protocol::Heartbeat{}).ok());
  EXPECT_FALSE(Ask(*eves, protocol::Heartbeat{}, 300).ok());
  EXPECT_GE(server_->counters().cut_peers, 1u);
  EXPECT_EQ(received_.size(), 2u);
  anns.reset();
  EXPECT_TRUE(Ask(*eves, protocol::Heartbeat{}).ok()) << "a place is free";
}

TEST_F(AdmissionToTheServer, AHandshakeThatEndsWithoutAWordThreeTimesIsAnotherServer) {
  StartServer();
  std::vector<absl::StatusCode> lost;
  const auto socket = ClientSocket::Connect(
      *loop_,
      {.address = address_,
       .server_key = KeyPair::Generate().public_key,
       .pair = KeyPair::Generate()},
      {.on_message = [](auto) {},
       .on_connected = [] {},
       .on_lost = [&lost](const Status& why) { lost.push_back(why.code()); }});
  ASSERT_TRUE(socket.ok()) << Describe(socket.status());
  ASSERT_TRUE(Wait([&] { return lost.size() >= 4; }));
  using absl::StatusCode;
  EXPECT_EQ(lost, (std::vector<StatusCode>{StatusCode::kUnavailable, StatusCode::kUnavailable,
                                           StatusCode::kPermissionDenied,
                                           StatusCode::kPermissionDenied}));
}

TEST_F(AdmissionToTheServer, WrongServerKeyIsSaid) {
  KeyFile key = MakeKey("ann");
  StartServer();
  key.server_key = KeyPair::Generate().public_key;
  const auto session = Open(key);
  ASSERT_TRUE(Wait([&] { return absl::IsPermissionDenied(session->state()); }));
  EXPECT_NE(MessageOf(session->state()).find("a different key"), std::string_view::npos);
  EXPECT_EQ(server_->counters().accepted, 0u);
}

TEST_F(AdmissionToTheServer, AServerThatDoesNotAnswerIsAwayAndNotAnother) {
  zmq::socket_t frozen(raw_context_, zmq::socket_type::stream);  // takes connections, says nothing
  frozen.set(zmq::sockopt::linger, 0);
  frozen.bind("tcp://127.0.0.1:*");
  const KeyFile key = MakeKey("ann");
  std::vector<Status> lost;
  const auto socket =
      ClientSocket::Connect(*loop_,
                            {.address = frozen.get(zmq::sockopt::last_endpoint),
                             .server_key = key.server_key,
                             .pair = key.pair,
                             .handshake_ms = 60},
                            {.on_message = [](auto) {},
                             .on_connected = [] {},
                             .on_lost = [&lost](const Status& why) { lost.push_back(why); }});
  ASSERT_TRUE(socket.ok()) << Describe(socket.status());
  ASSERT_TRUE(Wait([&] { return lost.size() >= 5; }));
  for (const Status& why : lost) {
    EXPECT_TRUE(absl::IsUnavailable(why)) << Describe(why);
    EXPECT_NE(MessageOf(why).find("does not answer"), std::string_view::npos) << Describe(why);
  }
}

constexpr ssize_t kGreetingBytes = 64;

/// The greeting of ZMTP 3.0 (rfc.zeromq.org/spec/23): signature, version, mechanism, filler.
std::string Greeting(std::string_view mechanism) {
  std::string greeting = std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12);
  greeting += mechanism;
  greeting.resize(kGreetingBytes, '\0');
  return greeting;
}

TEST_F(AdmissionToTheServer, PeersWithoutCurveGetNothing) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  zmq::socket_t null_peer = RawDealer(), plain_peer = RawDealer();
  plain_peer.set(zmq::sockopt::plain_username, "ann");
  plain_peer.set(zmq::sockopt::plain_password, key.pair.secret_key);
  for (auto* peer : {&null_peer, &plain_peer}) {
    peer->connect(address_);
    for (int i = 0; i < 10; ++i) peer->send(zmq::str_buffer("hello"), zmq::send_flags::dontwait);
  }
  // ZeroMQ's own peers may hang up first, and then count as peers that left; these two stay.
  const UniqueFd null_greeting = RawTcp(address_), plain_greeting = RawTcp(address_);
  ASSERT_EQ(write(null_greeting.get(), Greeting("NULL").data(), kGreetingBytes), kGreetingBytes);
  ASSERT_EQ(write(plain_greeting.get(), Greeting("PLAIN").data(), kGreetingBytes), kGreetingBytes);
  ASSERT_TRUE(Wait([&] {
    return TimesDropped("unknown", "it speaks no CURVE, or did not finish the handshake") >= 2;
  }));
  EXPECT_TRUE(Ask(*Open(key), protocol::Heartbeat{}).ok());
  EXPECT_EQ(received_.size(), 1u);
  EXPECT_EQ(server_->counters().accepted, 1u);
}

TEST_F(AdmissionToTheServer, PeersThatLeaveWhileTheyConnectAreNoIntruders) {
  constexpr std::uint64_t kPeers = 20;
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  for (std::uint64_t i = 0; i < kPeers; ++i) {
    const UniqueFd leaving = RawTcp(address_);
    if (i % 3 == 1) ASSERT_EQ(write(leaving.get(), "\xff\0\0", 3), 3);
    // The socket is closed with bytes of the greeting unread: a reset.
    if (i % 3 == 2) ASSERT_TRUE(Wait([&] { return HasBytes(leaving.get()); }));
  }
  ASSERT_TRUE(Wait([&] { return server_->counters().failed_handshakes >= kPeers; }));
  // ZeroMQ does not notice the end of every one, and lets it time out.
  EXPECT_LT(TimesDropped("unknown", "it speaks no CURVE, or did not finish the handshake"),
            kPeers / 2);
  EXPECT_TRUE(Ask(*Open(key), protocol::Heartbeat{}).ok());
}

TEST_F(AdmissionToTheServer, WithoutItsThreadNobodyGetsInAndSessionsStay) {
  const KeyFile ann = MakeKey("ann"), bob = MakeKey("bob");
  StartServer();
  AnswerEverything();
  const auto before = Open(ann);
  ASSERT_TRUE(Ask(*before, protocol::Heartbeat{}).ok());
  server_->StopAdmitting();
  const auto after = Open(bob);
  EXPECT_FALSE(Ask(*after, protocol::Heartbeat{}, 1500).ok());
  EXPECT_FALSE(after->connected());
  EXPECT_EQ(server_->counters().accepted, 1u);
  EXPECT_TRUE(Ask(*before, protocol::Heartbeat{}).ok());
}

TEST_F(AdmissionToTheServer, StolenRoutingIdGainsNothing) {
  const KeyFile ann = MakeKey("ann", Role::kOperator), eve = MakeKey("eve", Role::kTrainer);
  StartServer();
  zmq::socket_t anns = RawCurveDealer(ann, "the-id"), eves = RawCurveDealer(eve, "the-id");
  anns.connect(address_);
  anns.send(zmq::str_buffer("from ann"), zmq::send_flags::none);
  ASSERT_TRUE(Wait([&] { return received_.size() == 1; }));
  eves.connect(address_);
  eves.send(zmq::str_buffer("from eve"), zmq::send_flags::none);
  ASSERT_TRUE(Wait([&] { return !gone_.empty(); }));
  EXPECT_EQ(gone_[0], received_[0].peer.id);
  // Nothing of eve's ever counts as ann's, whatever comes later.
  eves.send(zmq::str_buffer("from eve"), zmq::send_flags::dontwait);
  const KeyFile bob = MakeKey("bob");
  server_->ReplaceKeys(Table());
  const auto bobs = Open(bob);
  ASSERT_TRUE(Wait([&] { return bobs->connected(); }));
  ASSERT_TRUE(bobs->Tell(protocol::Heartbeat{}).ok());
  ASSERT_TRUE(Wait([&] { return received_.back().peer.key_name == "bob"; }));
  for (const auto& each : received_) {
    if (each.peer.key_name == "ann") {
      EXPECT_EQ(each.bytes, "from ann");
    }
  }
  EXPECT_GE(server_->counters().dropped_messages, 1u);
}

TEST_F(AdmissionToTheServer, OversizeMessageEndsOnlyItsSender) {
  const KeyFile ann = MakeKey("ann"), bob = MakeKey("bob");
  StartServer();
  AnswerEverything();
  const auto bobs = Open(bob);
  ASSERT_TRUE(Ask(*bobs, protocol::Heartbeat{}).ok());
  zmq::socket_t anns = RawCurveDealer(ann);
  anns.connect(address_);
  anns.send(zmq::str_buffer("small"), zmq::send_flags::none);
  ASSERT_TRUE(Wait([&] { return received_.size() == 2; }));
  anns.send(zmq::message_t(protocol::kMaxMessageBytes + 1024), zmq::send_flags::none);
  ASSERT_TRUE(Wait([&] { return !gone_.empty(); }));
  EXPECT_EQ(gone_[0], received_[1].peer.id);
  EXPECT_TRUE(Ask(*bobs, protocol::Heartbeat{}).ok());
  for (const auto& each : received_) EXPECT_LE(each.bytes.size(), protocol::kMaxMessageBytes);
}

TEST_F(AdmissionToTheServer, LargestMessagePasses) {
  const KeyFile ann = MakeKey("ann");
  StartServer();
  zmq::socket_t anns = RawCurveDealer(ann);
  anns.connect(address_);
  anns.send(zmq::message_t(protocol::kMaxMessageBytes), zmq::send_flags::none);
  ASSERT_TRUE(Wait([&] { return !received_.empty(); }));
  EXPECT_EQ(received_[0].bytes.size(), protocol::kMaxMessageBytes);
}

TEST_F(AdmissionToTheServer, MessagesOfManyFramesAreDropped) {
  const KeyFile ann = MakeKey("ann");
  StartServer();
  zmq::socket_t anns = RawCurveDealer(ann);
  anns.connect(address_);
  for (int i = 0; i < 20; ++i) anns.send(zmq::str_buffer("part"), zmq::send_flags::sndmore);
  anns.send(zmq::str_buffer("end"), zmq::send_flags::none);
  anns.send(zmq::str_buffer("whole"), zmq::send_flags::none);
  ASSERT_TRUE(Wait([&] { return !received_.empty(); }));
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_[0].bytes, "whole");
  EXPECT_EQ(server_->counters().dropped_messages, 1u);
}

TEST_F(AdmissionToTheServer, IdleStrangersDoNotKeepOthersOut) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(RawTcp(address_));
  const TimeMs start = loop_->NowMs();
  EXPECT_TRUE(Ask(*Open(key), protocol::Heartbeat{}).ok());
  EXPECT_LT(loop_->NowMs() - start, 5000);
}

TEST_F(AdmissionToTheServer, GarbageOnTheWireIsCountedAndForgotten) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  std::mt19937_64 random(5);
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(RawTcp(address_));
    std::string bytes(300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    // Half of them at least begin like a peer of ours (a ZMTP 3 greeting).
    if (i % 2 == 0) {
      bytes.replace(0, 12, std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12));
      bytes.replace(12, 20, std::string("CURVE") + std::string(15, '\0'));
    }
    ASSERT_EQ(send(strangers.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  EXPECT_TRUE(Ask(*Open(key), protocol::Heartbeat{}).ok());
  EXPECT_EQ(server_->counters().accepted, 1u);
  EXPECT_EQ(received_.size(), 1u);
}

TEST_F(AdmissionToTheServer, PeerThatDoesNotReadIsCut) {
  const KeyFile ann = MakeKey("ann");
  StartServer();
  zmq::socket_t anns = RawCurveDealer(ann);
  anns.set(zmq::sockopt::rcvhwm, 1);
  anns.connect(address_);
  anns.send(zmq::str_buffer("hello"), zmq::send_flags::none);
  ASSERT_TRUE(Wait([&] { return !received_.empty(); }));
  // Large enough that the kernel's buffers fill before the queue, and small enough that both are
  // full long before ZeroMQ drops a peer whose heartbeats wait behind unread data.
  const std::string large(16 << 10, 'x');
  Status sent;
  for (int i = 0; i < 100'000 && sent.ok(); ++i) {
    sent = server_->Send(received_[0].peer.id, AsBytes(large));
  }
  EXPECT_EQ(sent.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Wait([&] { return gone_.size() == 1; }));
  EXPECT_EQ(server_->counters().cut_peers, 1u);
}

TEST_F(AdmissionToTheServer, WhatPeersDoNotReadIsBoundedInBytesAndWhoReadsStays) {
  constexpr std::uint64_t kMost = 16 << 20;
  const KeyFile ann = MakeKey("ann"), bob = MakeKey("bob");
  StartServer(kMost);
  zmq::socket_t anns = RawCurveDealer(ann), bobs = RawCurveDealer(bob);
  anns.set(zmq::sockopt::rcvhwm, 1);
  for (zmq::socket_t* socket : {&anns, &bobs}) {
    socket->connect(address_);
    socket->send(zmq::str_buffer("hello"), zmq::send_flags::none);
  }
  ASSERT_TRUE(Wait([&] { return received_.size() == 2; }));
  const std::size_t anns_place = received_[0].peer.key_name == "ann" ? 0 : 1;
  const PeerId ann_id = received_[anns_place].peer.id, bob_id = received_[1 - anns_place].peer.id;
  const std::string large(1 << 20, 'x');
  std::uint64_t sent = 0;
  while (server_->Send(ann_id, AsBytes(large)).ok() && sent < 8 * kMost) {
    sent += large.size();
    ASSERT_TRUE(server_->Send(bob_id, AsBytes(large)).ok());
    zmq::message_t read;
    ASSERT_TRUE(bobs.recv(read).has_value());
  }
  EXPECT_GE(sent, kMost / 2);
  EXPECT_LT(sent, 2 * kMost) << "the limit and what the kernel's buffers took";
  EXPECT_TRUE(Wait([&] { return gone_ == std::vector<PeerId>{ann_id}; }));
  EXPECT_TRUE(server_->Send(bob_id, AsBytes(large)).ok());
}

TEST_F(AdmissionToTheServer, PausedServerReadsLaterWhatWasSent) {
  const KeyFile ann = MakeKey("ann");
  StartServer();
  AnswerEverything();
  const auto session = Open(ann);
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  server_->Pause(true);
  EXPECT_EQ(Ask(*session, protocol::Heartbeat{}, 200).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(received_.size(), 1u);
  server_->Pause(false);
  EXPECT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
}

TEST_F(AdmissionToTheServer, PublicAndWildcardAddressesMustBeNamedOnPurpose) {
  for (const char* address : {"tcp://0.0.0.0:*", "tcp://[::]:*", "tcp://8.8.8.8:*"}) {
    const auto server = ServerSocket::Bind(*loop_, {.address = address, .pair = server_pair_},
                                           AuthorizedKeys(), {});
    EXPECT_EQ(server.status().code(), absl::StatusCode::kPermissionDenied) << address;
  }
  EXPECT_TRUE(
      ServerSocket::Bind(*loop_,
                         {.address = "tcp://0.0.0.0:*", .pair = server_pair_, .allow_public = true},
                         AuthorizedKeys(), {})
          .ok());
}

TEST_F(AdmissionToTheServer, AddressInUseIsSaid) {
  StartServer();
  const auto second =
      ServerSocket::Bind(*loop_, {.address = address_, .pair = server_pair_}, AuthorizedKeys(), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  const auto elsewhere =
      ServerSocket::Bind(*loop_, {.address = "tcp://192.168.255.254:7678", .pair = server_pair_},
                         AuthorizedKeys(), {});
  EXPECT_EQ(elsewhere.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(AdmissionToTheServer, PairThatDoesNotFitIsRefused) {
  const KeyPair odd{KeyPair::Generate().public_key, KeyPair::Generate().secret_key};
  EXPECT_EQ(ServerSocket::Bind(*loop_, {.address = address_, .pair = odd}, AuthorizedKeys(), {})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace patchbay::control

#include "runtime/wire/control/session.h"

#include <csignal>
#include <future>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/wire/control/client_socket.h"
#include "tests/runtime/wire/control/control_fixture.h"

namespace patchbay::control {
namespace {

using SessionOverSockets = ControlFixture;

TEST_F(SessionOverSockets, RequestOfAKnownKeyIsAnswered) {
  const KeyFile key = MakeKey("ann", Role::kOperator);
  StartServer();
  AnswerEverything();
  const auto session = Open(key);
  const auto answer = Ask(*session, protocol::Heartbeat{1});
  ASSERT_TRUE(answer.ok()) << Describe(answer.status());
  EXPECT_EQ(std::get<protocol::HeartbeatSeen>(*answer).scheduler_incarnation, 7u);
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_[0].peer.key_name, "ann");
  EXPECT_EQ(received_[0].peer.role, Role::kOperator);
  EXPECT_EQ(server_->counters().accepted, 1u);
}

TEST_F(SessionOverSockets, AbstractUnixSocketWorksTheSameWay) {
  address_ = StrCat("ipc://@patchbay-test-", Hex64(RandomU64()));
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  EXPECT_TRUE(Ask(*Open(key), protocol::Heartbeat{1}).ok());
}

TEST_F(SessionOverSockets, RefusalArrivesAsItsStatus) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  answer_ = [this](const Peer& peer, std::span<const std::byte> bytes) {
    protocol::RequestFailed failed{
        {static_cast<std::int32_t>(absl::StatusCode::kNotFound), "x: y"}};
    const auto reply =
        protocol::Encode({.request_id = protocol::Decode(bytes)->request_id, .body = failed});
    EXPECT_TRUE(server_->Send(peer.id, AsBytes(*reply)).ok());
  };
  const auto answer = Ask(*Open(key), protocol::CancelJob{4});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(answer.status()), "x: y");
}

TEST_F(SessionOverSockets, UnansweredRequestIsRepeatedUnderItsNumber) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  const auto session = Open(key);
  int answers = 0;
  answer_ = [this](const Peer& peer, std::span<const std::byte> bytes) {
    if (received_.size() < 2) return;  // the first is lost
    const auto message = protocol::Decode(bytes);
    const auto reply =
        protocol::Encode({.request_id = message->request_id, .body = protocol::HeartbeatSeen{}});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(server_->Send(peer.id, AsBytes(*reply)).ok());
  };
  session->Request(protocol::Heartbeat{5}, kPatienceMs, [&](auto answer) {
    EXPECT_TRUE(answer.ok());
    ++answers;
  });
  EXPECT_TRUE(Wait([&] { return answers > 0; }));
  EXPECT_GE(received_.size(), 2u);
  EXPECT_EQ(received_[0].bytes, received_[1].bytes);
  // The second and third answer of the same request are not for anybody.
  EXPECT_TRUE(Ask(*session, protocol::Heartbeat{6}).ok());
  EXPECT_EQ(answers, 1);
}

TEST_F(SessionOverSockets, DeadlineIsSaid) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  const auto session = Open(key);
  const auto answer = Ask(*session, protocol::Heartbeat{}, 300);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(MessageOf(answer.status()).find("no answer in 0.3 s"), std::string_view::npos);
}

TEST_F(SessionOverSockets, ARequestWithoutADeadlineWaitsForItsAnswer) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  const auto session = Open(key);
  int answers = 0;
  session->Request(protocol::Heartbeat{1}, 0, [&](auto answer) {
    EXPECT_TRUE(answer.ok());
    ++answers;
  });
  const auto other = Ask(*session, protocol::Heartbeat{2}, 300);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_FALSE(received_.empty());
  EXPECT_EQ(answers, 0);
  const auto request = protocol::Decode(AsBytes(received_[0].bytes));
  const auto reply =
      protocol::Encode({.request_id = request->request_id, .body = protocol::HeartbeatSeen{7}});
  EXPECT_TRUE(server_->Send(received_[0].peer.id, AsBytes(*reply)).ok());
  EXPECT_TRUE(Wait([&] { return answers == 1; }));
}

TEST_F(SessionOverSockets, ARefusalWithoutACodeIsNoSuccess) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  for (const std::int32_t code : {0, -1, 17}) {
    answer_ = [&](const Peer& peer, std::span<const std::byte> bytes) {
      const auto reply = protocol::Encode({.request_id = protocol::Decode(bytes)->request_id,
                                           .body = protocol::RequestFailed{{code, "why"}}});
      EXPECT_TRUE(server_->Send(peer.id, AsBytes(*reply)).ok());
    };
    const auto answer = Ask(*Open(key), protocol::Heartbeat{});
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInternal) << code;
  }
}

TEST_F(SessionOverSockets, SoManyRequestsWaitAndNoMore) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  const auto session = Open(key);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < kMaxPendingRequests; ++i) {
    session->Request(protocol::Heartbeat{}, 0, [&](auto) { ++refused; });
  }
  Status last;
  session->Request(protocol::Heartbeat{}, 0, [&](auto answer) { last = answer.status(); });
  EXPECT_TRUE(Wait([&] { return !last.ok(); }));
  EXPECT_EQ(last.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused, 0u);
}

TEST_F(SessionOverSockets, AnswerOfAnotherVersionIsAnError) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  answer_ = [this](const Peer& peer, std::span<const std::byte> bytes) {
    const auto reply = protocol::Encode({.version = 9,
                                         .request_id = protocol::Decode(bytes)->request_id,
                                         .body = protocol::HeartbeatSeen{}});
    EXPECT_TRUE(server_->Send(peer.id, AsBytes(*reply)).ok());
  };
  const auto answer = Ask(*Open(key), protocol::Heartbeat{});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(answer.status()).find("version 9"), std::string_view::npos);
}

TEST_F(SessionOverSockets, NothingListeningIsUnavailable) {
  const KeyFile key = MakeKey("ann");
  address_ = "tcp://127.0.0.1:1";
  const auto answer = Ask(*Open(key), protocol::Heartbeat{}, 400);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(MessageOf(answer.status()).find("tcp://127.0.0.1:1: no answer in 0.4 s"),
            std::string_view::npos)
      << MessageOf(answer.status());
}

TEST_F(SessionOverSockets, FactsNobodyAskedForArriveToo) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  std::vector<protocol::Body> facts;
  const auto session =
      Open(key, {.on_connected = {}, .on_lost = {}, .on_fact = [&](protocol::Body body) {
                   facts.push_back(std::move(body));
                 }});
  ASSERT_TRUE(Wait([&] { return session->connected(); }));
  ASSERT_TRUE(session->Tell(protocol::Heartbeat{}).ok());
  ASSERT_TRUE(Wait([&] { return !received_.empty(); }));
  const auto fact = protocol::Encode({.body = protocol::KillWorker{3, 4}});
  ASSERT_TRUE(server_->Send(received_[0].peer.id, AsBytes(*fact)).ok());
  ASSERT_TRUE(Wait([&] { return !facts.empty(); }));
  EXPECT_EQ(std::get<protocol::KillWorker>(facts[0]).index, 3u);
}

TEST_F(SessionOverSockets, ThatNothingListensIsSaidOnce) {
  const KeyFile key = MakeKey("ann");
  address_ = "tcp://127.0.0.1:1";
  int losses = 0;
  const auto session =
      Open(key, {.on_connected = {}, .on_lost = [&](const Status&) { ++losses; }, .on_fact = {}});
  ASSERT_TRUE(Wait([&] { return losses > 0; }));
  bool later = false;  // after further tries
  loop_->After(400, [&] { later = true; });
  ASSERT_TRUE(Wait([&] { return later; }));
  EXPECT_EQ(losses, 1);
}

TEST(ClientSocket, ConnectsToNoPublicAddressAndToNoPortThatIsNotNamed) {
  const auto loop = *EventLoop::Open();
  const auto connect = [&](const std::string& address) {
    const KeyPair pair = KeyPair::Generate();
    const ClientSocket::Options options = {
        .address = address, .server_key = pair.public_key, .pair = pair};
    return ClientSocket::Connect(*loop, options, {}).status().code();
  };
  EXPECT_EQ(connect("tcp://8.8.8.8:7678"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(connect("tcp://127.0.0.1:*"), absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionOverSockets, SendingWhileNotConnectedIsUnavailable) {
  const KeyFile key = MakeKey("ann");
  address_ = "tcp://127.0.0.1:1";
  EXPECT_EQ(Open(key)->Tell(protocol::Heartbeat{}).code(), absl::StatusCode::kUnavailable);
}

TEST_F(SessionOverSockets, RestartOfTheServerIsBridged) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  int connections = 0, losses = 0;
  const auto session = Open(key, {.on_connected = [&] { ++connections; },
                                  .on_lost = [&](const Status&) { ++losses; },
                                  .on_fact = {}});
  ASSERT_TRUE(Wait([&] { return session->connected(); }));
  bool answered = false;
  session->Request(protocol::Heartbeat{1}, kPatienceMs, [&](auto answer) {
    EXPECT_TRUE(answer.ok()) << Describe(answer.status());
    answered = true;
  });
  ASSERT_TRUE(Wait([&] { return received_.size() == 1; }));
  server_.reset();
  ASSERT_TRUE(Wait([&] { return losses > 0; }));
  EXPECT_FALSE(session->connected());
  AnswerEverything();
  StartServer();
  EXPECT_TRUE(Wait([&] { return answered; }));
  EXPECT_EQ(connections, 2);
}

TEST_F(SessionOverSockets, PeerThatEndsIsGoneAtOnce) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  auto session = Open(key);
  ASSERT_TRUE(Ask(*session, protocol::Heartbeat{}).ok());
  const PeerId id = received_[0].peer.id;
  session.reset();
  EXPECT_TRUE(Wait([&] { return !gone_.empty(); }));
  EXPECT_EQ(gone_, std::vector<PeerId>{id});
  EXPECT_EQ(server_->Send(id, {}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(server_->Find(id), nullptr);
}

TEST_F(SessionOverSockets, FrozenPeerIsGoneAndComesBackAsAnother) {
  address_ = StrCat("ipc://@patchbay-test-", Hex64(RandomU64()));
  const KeyFile key = MakeKey("ann");
  const pid_t child = fork();
  if (child == 0) {  // before any thread of ours runs
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto loop = *EventLoop::Open();
    const auto session = *Session::Open(*loop, key, {});
    loop->Every(50, [&] { session->Tell(protocol::Heartbeat{}).IgnoreError(); });
    loop->RunUntil([] { return false; }, 10 * kPatienceMs);
    _exit(0);
  }
  StartServer();
  ASSERT_TRUE(Wait([&] { return !received_.empty(); }));
  const PeerId id = received_[0].peer.id;
  kill(child, SIGSTOP);
  const TimeMs frozen_at = loop_->NowMs();
  EXPECT_TRUE(Wait([&] { return !gone_.empty(); }));
  EXPECT_LE(loop_->NowMs() - frozen_at, 5000);
  EXPECT_EQ(gone_, std::vector<PeerId>{id});
  kill(child, SIGCONT);
  EXPECT_TRUE(Wait([&] { return received_.back().peer.id != id; }));
  kill(child, SIGKILL);
  EXPECT_TRUE(Wait([&] { return gone_.size() == 2; }));
  waitpid(child, nullptr, 0);
}

TEST_F(SessionOverSockets, ReconnectingPeerIsANewOne) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(*Open(key), protocol::Heartbeat{}).ok());
  ASSERT_TRUE(Wait([&] { return gone_.size() == 20; }));
  std::vector<PeerId> ids;
  for (const auto& each : received_) ids.push_back(each.peer.id);
  EXPECT_EQ(std::set<PeerId>(ids.begin(), ids.end()).size(), 20u);
  EXPECT_EQ(gone_, ids);
}

TEST_F(SessionOverSockets, RequestClientAsksAndWaits) {
  KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  key.address = address_;
  StatusOr<protocol::HeartbeatSeen> answer = absl::UnknownError("");
  std::thread user([&] {
    const auto client = RequestClient::Open(key, kPatienceMs);
    ASSERT_TRUE(client.ok()) << Describe(client.status());
    answer = (*client)->CallFor<protocol::HeartbeatSeen>(protocol::Heartbeat{}, kPatienceMs);
    EXPECT_EQ((*client)
                  ->CallFor<protocol::JobSubmitted>(protocol::Heartbeat{}, kPatienceMs)
                  .status()
                  .code(),
              absl::StatusCode::kInternal);
    loop_->Stop();
  });
  loop_->Run();
  user.join();
  ASSERT_TRUE(answer.ok()) << Describe(answer.status());
  EXPECT_EQ(answer->scheduler_incarnation, 7u);
}

TEST_F(SessionOverSockets, RequestClientStopsWaitingWhenItsKeyIsRevoked) {
  KeyFile key = MakeKey("ann");
  StartServer();
  key.address = address_;
  answer_ = [this](const Peer&, std::span<const std::byte>) {
    loop_->Post([this] {
      known_[0].revoked = true;
      server_->ReplaceKeys(Table());
    });
  };
  StatusOr<protocol::Body> answer = absl::UnknownError("");
  std::thread user([&] {
    const auto client = RequestClient::Open(key, kPatienceMs);
    ASSERT_TRUE(client.ok()) << Describe(client.status());
    TimeMs looks = kPatienceMs / RequestClient::kLookEveryMs;
    answer = (*client)->Call(protocol::Heartbeat{}, 0, [&looks] { return --looks > 0; });
    loop_->Stop();
  });
  loop_->Run();
  user.join();
  EXPECT_TRUE(absl::IsPermissionDenied(answer.status())) << Describe(answer.status());
}

TEST_F(SessionOverSockets, RequestClientHasAFewLastWordsOnceItIsToldToStop) {
  KeyFile key = MakeKey("ann");
  StartServer();
  AnswerEverything();
  key.address = address_;
  const auto stopped = [] { return false; };
  StatusOr<protocol::Body> answered = absl::UnknownError(""), silent = answered, later = answered;
  std::promise<void> fell_silent;
  std::thread user([&] {
    const auto client = RequestClient::Open(key, kPatienceMs);
    ASSERT_TRUE(client.ok()) << Describe(client.status());
    answered = (*client)->Call(protocol::Heartbeat{}, kPatienceMs, stopped);
    loop_->Post([&] {
      answer_ = nullptr;
      fell_silent.set_value();
    });
    fell_silent.get_future().wait();
    silent = (*client)->Call(protocol::Heartbeat{}, 0, stopped);
    later = (*client)->Call(protocol::Heartbeat{}, 0, stopped);
    loop_->Stop();
  });
  loop_->Run();
  user.join();
  EXPECT_TRUE(answered.ok()) << Describe(answered.status());
  EXPECT_TRUE(absl::IsCancelled(silent.status())) << Describe(silent.status());
  EXPECT_TRUE(absl::IsCancelled(later.status())) << Describe(later.status());
}

TEST_F(SessionOverSockets, RequestClientStopsConnectingOnceItIsToldTo) {
  KeyFile key = MakeKey("ann");
  key.address = "tcp://127.0.0.1:1";
  const auto client = RequestClient::Open(key, kPatienceMs, [] { return false; });
  EXPECT_TRUE(absl::IsCancelled(client.status()));
  EXPECT_EQ(MessageOf(client.status()), "connect: tcp://127.0.0.1:1: interrupted");
}

TEST_F(SessionOverSockets, RequestClientSaysThatNothingAnswers) {
  KeyFile key = MakeKey("ann");
  key.address = "tcp://127.0.0.1:1";
  const auto client = RequestClient::Open(key, 300);
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(client.status()), "connect: tcp://127.0.0.1:1: no answer in 0.3 s");
}

}  // namespace
}  // namespace patchbay::control

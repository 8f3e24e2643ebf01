// Agent and worker ask to be registered once at a time: however often they were refused and
// connected again, one timer starts the next try. Both run in the test's process, on its clock.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/wire/control/keys.h"
#include "tests/runtime/wire/control/moved_clock.h"
#include "tests/workers/agent/played_scheduler.h"
#include "workers/agent/agent.h"
#include "workers/process/worker_session.h"

namespace patchbay::workers {
namespace {

constexpr TimeMs kPauseMs = 500;  ///< between a refusal and the next try
constexpr TimeMs kStepMs = 50;

/// An agent without workers, and its immediate answers.
struct AgentSide {
  using Peer = Agent;
  using Offer = protocol::RegisterAgent;
  static std::unique_ptr<Peer> Open(control::EventLoop& loop, const control::KeyFile& key) {
    AgentOptions options;
    options.key = key;
    options.cpus = 0;
    return *Agent::Open(loop, options);
  }
  static protocol::Body Registered(std::uint32_t incarnation) {
    return protocol::AgentRegistered{incarnation, 500};
  }
  using Reply = protocol::WorkerExited;
  static std::vector<protocol::Body> Ask(std::uint64_t number) {
    return {protocol::KillWorker{7, number}};
  }
  static std::uint64_t NumberOf(const Reply& reply) { return reply.worker_incarnation; }
};

struct WorkerSide {
  using Peer = WorkerSession;
  using Offer = protocol::RegisterWorker;
  static std::unique_ptr<Peer> Open(control::EventLoop& loop, const control::KeyFile& key) {
    WorkerOptions options;
    options.key = key;
    return *WorkerSession::Open(loop, options);
  }
  static protocol::Body Registered(std::uint32_t incarnation) {
    return protocol::WorkerRegistered{incarnation, 10'000};
  }
  static protocol::LeasesGranted Shard(const LeaseNumber& lease, std::uint64_t stream) {
    protocol::LeasesGranted granted;
    granted.shards.emplace_back();
    granted.shards[0].lease = lease;
    granted.shards[0].stream = stream;
    granted.shards[0].grant.count = 1;
    return granted;
  }
  using Reply = protocol::ShardsReturned;
  /// A shard that it has to give back.
  static std::vector<protocol::Body> Ask(std::uint64_t number) {
    const LeaseNumber lease{1'000, number};
    return {Shard(lease, number), protocol::LeasesRevoked{{lease}}};
  }
  static std::uint64_t NumberOf(const Reply& reply) { return reply.items[0].lease.counter; }
};

template <typename Side>
class Registration : public testing::Test {
 protected:
  void SetUp() override {
    const auto key = control::ReadKeyFile(scheduler_.key_path());
    ASSERT_TRUE(key.ok()) << key.status();
    peer_ = Side::Open(*loop_, *key);
    scheduler_.loop().Every(1, [] {});  // two loops take turns in this thread
  }

  protocol::RequestFailed Refusal() const {
    return {{static_cast<std::int32_t>(absl::StatusCode::kUnavailable), "not now"}};
  }
  void RunUntil(const std::function<bool()>& done) {
    ASSERT_TRUE(scheduler_.RunUntil([&] {
      loop_->RunOnce(0);
      return done();
    }));
  }
  /// Until an offer is here, by so much time with every look; how the scheduler names its sender.
  control::PeerId ExpectOffer(TimeMs move_ms = 0) {
    control::PeerId from{};
    RunUntil([&] {
      clock_.Move(move_ms);
      const auto offer = scheduler_.template Take<typename Side::Offer>();
      if (offer.has_value()) from = offer->first;
      return offer.has_value();
    });
    return from;
  }
  /// Waits until both sides have received all messages sent so far.
  void Settle(control::PeerId to) {
    for (protocol::Body& body : Side::Ask(++asked_)) scheduler_.Send(to, std::move(body));
    RunUntil([&] {
      const auto reply = scheduler_.template Take<typename Side::Reply>();
      if (reply.has_value() && scheduler_.last_request() != 0) scheduler_.Answer(to, Refusal());
      return reply.has_value() && Side::NumberOf(reply->second) == asked_;
    });
  }
  /// How many offers come in that time, when each is refused.
  int CountOffers(control::PeerId from, TimeMs time_ms) {
    int offers = 0;
    for (TimeMs passed_ms = 0; passed_ms < time_ms; passed_ms += kStepMs) {
      clock_.Move(kStepMs);
      loop_->RunOnce(0);
      Settle(from);
      while (scheduler_.template Take<typename Side::Offer>().has_value()) {
        ++offers;
        scheduler_.Answer(from, Refusal());
      }
      Settle(from);
    }
    return offers;
  }

  MovedClock clock_;
  PlayedScheduler scheduler_;
  std::unique_ptr<control::EventLoop> loop_ = *control::EventLoop::Open(&clock_);
  std::unique_ptr<typename Side::Peer> peer_;
  std::uint64_t asked_ = 0;
};

using Sides = testing::Types<AgentSide, WorkerSide>;
struct SideNames {
  template <typename Side>
  static std::string GetName(int) {
    return std::is_same_v<Side, AgentSide> ? "Agent" : "Worker";
  }
};
TYPED_TEST_SUITE(Registration, Sides, SideNames);

TYPED_TEST(Registration, IsAskedForOnceAPauseAfterManyRefusalsAndConnections) {
  control::PeerId from = this->ExpectOffer();
  for (int i = 0; i < 4; ++i) {
    this->scheduler_.Answer(from, this->Refusal());
    this->Settle(from);
    this->clock_.Move(kStepMs);
    this->scheduler_.Restart();
    from = this->ExpectOffer(1);  // the session waits a little before it connects again
  }
  this->scheduler_.Answer(from, this->Refusal());
  this->Settle(from);
  EXPECT_EQ(this->CountOffers(from, 4 * kPauseMs), 4);
}

TYPED_TEST(Registration, IsAskedForOnceAPauseHoweverOftenAnotherSchedulerIsHeard) {
  const control::PeerId from = this->ExpectOffer();
  this->scheduler_.Answer(from, TypeParam::Registered(1));
  for (int i = 0; i < 4; ++i) {
    this->clock_.Move(kStepMs);
    this->scheduler_.Send(from, protocol::HeartbeatSeen{2});
    ASSERT_EQ(this->ExpectOffer(), from);
    this->scheduler_.Answer(from, this->Refusal());
  }
  this->Settle(from);
  EXPECT_EQ(this->CountOffers(from, 4 * kPauseMs), 4);
}

TYPED_TEST(Registration, IsNotAskedForAgainWhileAnAnswerIsAwaited) {
  const control::PeerId from = this->ExpectOffer();
  this->scheduler_.Answer(from, TypeParam::Registered(1));
  for (int i = 0; i < 4; ++i) this->scheduler_.Send(from, protocol::HeartbeatSeen{2});
  ASSERT_EQ(this->ExpectOffer(), from);
  const std::uint64_t request = this->scheduler_.last_request();
  this->Settle(from);
  EXPECT_FALSE(this->scheduler_.template Take<typename TypeParam::Offer>().has_value());
  this->scheduler_.Send(from, this->Refusal(), request);
  this->Settle(from);
  EXPECT_EQ(this->CountOffers(from, 2 * kPauseMs), 2);
}

using WorkerRegistration = Registration<WorkerSide>;

TEST_F(WorkerRegistration, WhatIsGrantedBeforeTheAnswerIsBegunWhenItIsTheAnswerersOwn) {
  const control::PeerId from = ExpectOffer();
  const std::uint64_t request = scheduler_.last_request();
  scheduler_.Send(from, WorkerSide::Shard({1, 7}, 101));  // by a scheduler that has ended
  scheduler_.Send(from, WorkerSide::Shard({2, 7}, 102));
  Settle(from);
  EXPECT_FALSE(scheduler_.Take<protocol::FetchStream>().has_value()) << "begun too early";
  scheduler_.Send(from, protocol::WorkerRegistered{2, 10'000}, request);
  Settle(from);
  std::set<std::uint64_t> asked_about;
  while (const auto asked = scheduler_.Take<protocol::FetchStream>()) {
    asked_about.insert(asked->second.stream);
  }
  EXPECT_TRUE(asked_about.contains(102));
  EXPECT_FALSE(asked_about.contains(101));
}

}  // namespace
}  // namespace patchbay::workers

// When a session repeats and connects again: on a clock that the test moves, over real sockets.
#include <algorithm>
#include <string>
#include <variant>

#include "tests/runtime/wire/control/control_fixture.h"
#include "tests/runtime/wire/control/moved_clock.h"

namespace patchbay::control {
namespace {

class SessionTimes : public ControlFixture {
 protected:
  void SetUp() override {
    loop_->Every(1, [] {});  // two loops take turns in this thread
  }
  void OpenTimed(KeyFile key) {
    key.address = address_;
    session_ = *Session::Open(
        *timed_, key,
        {.on_connected = {}, .on_lost = [this](const Status&) { ++losses_; }, .on_fact = {}});
  }
  /// Moves time by so much with every look.
  bool WaitBoth(const std::function<bool()>& done, TimeMs move_ms = 0) {
    return Wait([&] {
      clock_.Move(move_ms);
      timed_->RunOnce(0);
      return done();
    });
  }
  bool AwaitConnection(TimeMs move_ms = 0) {
    return WaitBoth([this] { return session_->connected(); }, move_ms);
  }
  static bool IsMark(const Received& each) {
    const auto message = protocol::Decode(AsBytes(each.bytes));
    return std::holds_alternative<protocol::HeartbeatSeen>(message->body);
  }
  /// Moves time; the requests that have come when all that was sent then is here.
  std::ptrdiff_t RequestsAfter(TimeMs pause_ms) {
    clock_.Move(pause_ms);
    timed_->RunOnce(0);
    const auto marks = [this] {
      return std::count_if(received_.begin(), received_.end(), &IsMark);
    };
    const auto before = marks();
    EXPECT_TRUE(session_->Tell(protocol::HeartbeatSeen{}).ok());
    EXPECT_TRUE(WaitBoth([&] { return marks() > before; }));
    return static_cast<std::ptrdiff_t>(received_.size()) - marks();
  }

  MovedClock clock_;
  std::unique_ptr<EventLoop> timed_ = *EventLoop::Open(&clock_);
  std::unique_ptr<Session> session_;
  int losses_ = 0;
};

TEST_F(SessionTimes, TheLongestPauseBetweenTwoRepeatsIsFiveSeconds) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  OpenTimed(key);
  ASSERT_TRUE(AwaitConnection());
  session_->Request(protocol::Heartbeat{1}, 0, [](const auto&) {});
  std::ptrdiff_t sent = 1;
  for (const TimeMs pause_ms : {1'000, 2'000, 4'000, 5'000, 5'000}) {
    EXPECT_EQ(RequestsAfter(pause_ms - 1), sent) << pause_ms;
    EXPECT_EQ(RequestsAfter(1), ++sent) << pause_ms;
  }
}

TEST_F(SessionTimes, ARequestExpiresInTheMillisecondOfItsDeadline) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  OpenTimed(key);
  ASSERT_TRUE(AwaitConnection());
  Status answer;
  session_->Request(protocol::Heartbeat{1}, 10'000,
                    [&](const auto& got) { answer = got.status(); });
  RequestsAfter(9'999);
  EXPECT_TRUE(answer.ok()) << answer;
  RequestsAfter(1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer)) << answer;
}

TEST_F(SessionTimes, ANewConnectionIsAskedAtOnceAndAgainAfterAShortPause) {
  const KeyFile key = MakeKey("ann");
  StartServer();
  OpenTimed(key);
  ASSERT_TRUE(AwaitConnection());
  session_->Request(protocol::Heartbeat{1}, 0, [](const auto&) {});
  EXPECT_EQ(RequestsAfter(1'000), 2);
  EXPECT_EQ(RequestsAfter(2'000), 3);
  server_.reset();
  ASSERT_TRUE(WaitBoth([this] { return !session_->connected(); }));
  StartServer();
  ASSERT_TRUE(AwaitConnection(1));
  EXPECT_EQ(RequestsAfter(0), 4);
  EXPECT_EQ(RequestsAfter(999), 4);
  EXPECT_EQ(RequestsAfter(1), 5);
}

TEST_F(SessionTimes, TriesAtLeastEveryFiveSecondsAndSoonAfterAConnectionThatWasLost) {
  const KeyFile key = MakeKey("ann");
  const KnownKey ann = known_.back();
  known_.clear();
  StartServer();
  OpenTimed(key);
  for (int refused = 1; refused <= 10; ++refused) {
    ASSERT_TRUE(WaitBoth([&] { return losses_ == refused; })) << refused;
    clock_.Move(5'000);
  }
  known_ = {ann};
  server_->ReplaceKeys(Table());
  ASSERT_TRUE(WaitBoth([this] {
    if (losses_ > 10) clock_.Move(5'000);  // this one came before the key was known
    losses_ = std::min(losses_, 10);
    return session_->connected();
  }));
  EXPECT_EQ(RequestsAfter(0), 0);
  server_->Disconnect(received_.back().peer.id);
  ASSERT_TRUE(WaitBoth([this] { return !session_->connected(); }));
  clock_.Move(100);
  EXPECT_TRUE(AwaitConnection());
}

}  // namespace
}  // namespace patchbay::control

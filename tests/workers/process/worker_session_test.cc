// The session of a worker, against a scheduler that the test plays. Both run in the test's thread.
#include "workers/process/worker_session.h"

#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "tests/workers/agent/played_scheduler.h"

namespace patchbay::workers {
namespace {

class WorkerSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    WorkerOptions options;
    options.key = *control::ReadKeyFile(scheduler_.key_path());
    session_ = *WorkerSession::Open(*loop_, options);
    scheduler_.loop().Every(1, [] {});  // two loops take turns in this thread
    worker_ = Await<protocol::RegisterWorker>().first;
    scheduler_.Answer(worker_, protocol::WorkerRegistered{scheduler_.incarnation, 10'000});
  }

  template <typename Message>
  std::pair<control::PeerId, Message> Await() {
    std::optional<std::pair<control::PeerId, Message>> found;
    EXPECT_TRUE(scheduler_.RunUntil([&] {
      loop_->RunOnce(0);
      return (found = scheduler_.Take<Message>()).has_value();
    })) << "the message did not come";
    return found.value_or(std::pair<control::PeerId, Message>());
  }

  PlayedScheduler scheduler_;
  std::unique_ptr<control::EventLoop> loop_ = *control::EventLoop::Open();
  std::unique_ptr<WorkerSession> session_;
  control::PeerId worker_{};
};

TEST_F(WorkerSessionTest, AnswersEveryRevocationOfALeaseThatItNeverGot) {
  const LeaseNumber lost{1, 7};
  for (int asked = 0; asked < 2; ++asked) {  // the first answer may have been lost as well
    scheduler_.Send(worker_, protocol::LeasesRevoked{{lost}});
    const auto returned = Await<protocol::ShardsReturned>().second;
    ASSERT_EQ(returned.items.size(), 1u);
    EXPECT_EQ(returned.items[0].lease, lost);
    EXPECT_EQ(StatusOf(returned.items[0].outcome).code(), absl::StatusCode::kCancelled);
  }
  scheduler_.Send(worker_, protocol::LeasesRevoked{{lost, {1, 8}}});
  for (const LeaseNumber& lease : {lost, LeaseNumber{1, 8}}) {
    const auto returned = Await<protocol::ShardsReturned>().second;
    ASSERT_EQ(returned.items.size(), 1u);
    EXPECT_EQ(returned.items[0].lease, lease);
  }
}

}  // namespace
}  // namespace patchbay::workers

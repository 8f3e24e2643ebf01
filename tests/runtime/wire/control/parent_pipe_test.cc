#include "runtime/wire/control/parent_pipe.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/os/file.h"

namespace patchbay::control {
namespace {

constexpr TimeMs kPipePatienceMs = 10'000;

class ParentPipeTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_end_ = UniqueFd(ends[0]);
    pipe_.emplace(*loop_, ends[1]);
  }

  /// Everything said so far; ended() once the other end is closed.
  const std::string& Said() {
    char buffer[256];
    ssize_t got = 0;
    while ((got = read(read_end_.get(), buffer, sizeof buffer)) > 0) {
      said_.append(buffer, static_cast<std::size_t>(got));
    }
    ended_ = got == 0;
    return said_;
  }

  std::unique_ptr<EventLoop> loop_ = *EventLoop::Open();
  UniqueFd read_end_;
  std::optional<ParentPipe> pipe_;
  std::string said_;
  bool ended_ = false;
};

TEST_F(ParentPipeTest, SaysWhatIsReadyInALine) {
  pipe_->ReportReady("tcp://127.0.0.1:1");
  pipe_->ReportReady();
  EXPECT_EQ(Said(), "ready tcp://127.0.0.1:1\nready\n");
}

TEST_F(ParentPipeTest, SendsEmptyLinesAsLongAsTheLoopRunsAndNoneBefore) {
  EXPECT_EQ(Said(), "");
  EXPECT_TRUE(loop_->RunUntil([this] { return Said().size() >= 3; }, kPipePatienceMs));
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), static_cast<int>(said_.size()));
}

TEST_F(ParentPipeTest, PassesThePipeToNoChild) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const ParentPipe inherited(*loop_, ends[1]);
  EXPECT_NE(fcntl(ends[1], F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ParentPipeTest, ClosesThePipeAndStopsWithIt) {
  pipe_.reset();
  Said();
  EXPECT_TRUE(ended_);
  loop_->RunOnce(1);  // no timer is left that would write
}

TEST_F(ParentPipeTest, DoesNotBlockOnAParentThatDoesNotRead) {
  const std::string much(4096, 'x');
  for (int i = 0; i < 100; ++i) pipe_->ReportReady(much);
  EXPECT_LT(Said().size(), 100 * much.size());
}

}  // namespace
}  // namespace patchbay::control

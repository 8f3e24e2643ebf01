#include "runtime/client/client.h"

#include <deque>

#include "gtest/gtest.h"
#include "runtime/wire/protocol/envelope.h"

namespace patchbay::client {
namespace {

using protocol::Body;

/// Answers in the order given and remembers what it was asked.
struct Scripted {
  std::deque<StatusOr<Body>> answers;
  std::vector<Body> asked;
  Client Make() {
    return Client([this](Body command, std::int64_t) -> StatusOr<Body> {
      asked.push_back(std::move(command));
      if (answers.empty()) return absl::DeadlineExceededError("no more answers");
      auto answer = std::move(answers.front());
      answers.pop_front();
      return answer;
    });
  }
};

protocol::JobRow RowIn(protocol::JobState state) {
  protocol::JobRow row;
  row.job = 5;
  row.state = state;
  return row;
}

TEST(Client, GivesEverySubmissionAKeyOfItsOwn) {
  Scripted scheduler;
  scheduler.answers = {Body(protocol::JobSubmitted{5}), Body(protocol::JobSubmitted{6}),
                       Body(protocol::JobSubmitted{7})};
  Client client = scheduler.Make();
  protocol::SubmitJob job;
  EXPECT_EQ(*client.SubmitJob(job), 5u);
  EXPECT_EQ(*client.SubmitJob(job), 6u);
  job.submission_key = "mine";
  EXPECT_EQ(*client.SubmitJob(job), 7u);
  const auto key = [&](int i) {
    return std::get<protocol::SubmitJob>(scheduler.asked[static_cast<std::size_t>(i)])
        .submission_key;
  };
  EXPECT_NE(key(0), "");
  EXPECT_NE(key(0), key(1));
  EXPECT_EQ(key(2), "mine");
}

TEST(Client, AsksForOlderJobsUntilThereAreNone) {
  const auto page = [](std::vector<JobId> jobs) {
    protocol::JobsDescribed described;
    for (const JobId job : jobs) described.jobs.emplace_back().job = job;
    return Body(described);
  };
  Scripted scheduler;
  scheduler.answers = {page({9, 7}), page({4, 2}), page({})};
  const auto all = scheduler.Make().DescribeAllJobs();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 4u);
  EXPECT_EQ(std::get<protocol::DescribeJobs>(scheduler.asked[2]).before, 2u);
  // A scheduler of before knows no pages: its only one is not taken twice.
  scheduler.answers = {page({9, 7}), page({9, 7})};
  EXPECT_EQ(scheduler.Make().DescribeAllJobs()->size(), 2u);
}

TEST(Client, WaitsUntilAJobHasEndedAndShowsItsProgress) {
  Scripted scheduler;
  for (const auto state : {protocol::JobState::kQueued, protocol::JobState::kRunning,
                           protocol::JobState::kPartlyFailed}) {
    scheduler.answers.push_back(Body(protocol::JobsDescribed{{RowIn(state)}}));
  }
  Client client = scheduler.Make();
  int seen = 0;
  const auto row = client.Wait(5, [&seen](const protocol::JobRow&) { ++seen; });
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->state, protocol::JobState::kPartlyFailed);
  EXPECT_EQ(seen, 3);
}

TEST(Client, LooksSoonAtFirstAndSeldomInTheEnd) {
  EXPECT_EQ(PauseAfter(0), 5);
  EXPECT_EQ(PauseAfter(500), 5);
  EXPECT_EQ(PauseAfter(2'000), 20);
  EXPECT_EQ(PauseAfter(5'000), 50);
  EXPECT_EQ(PauseAfter(3'600'000), 50);
}

TEST(Client, StopsWaitingWhenTold) {
  Scripted scheduler;
  scheduler.answers = {Body(protocol::JobsDescribed{{RowIn(protocol::JobState::kRunning)}})};
  Client client = scheduler.Make();
  EXPECT_TRUE(absl::IsCancelled(client.Wait(5, {}, [] { return false; }).status()));
}

TEST(Client, SaysThatAJobIsNotKnown) {
  Scripted scheduler;
  scheduler.answers = {Body(protocol::JobsDescribed{})};
  Client client = scheduler.Make();
  EXPECT_TRUE(absl::IsNotFound(client.DescribeJob(5).status()));
}

TEST(Client, AResultThatFailedCarriesItsTasksError) {
  Scripted scheduler;
  protocol::JobRow row = RowIn(protocol::JobState::kFailed);
  row.failed.push_back({TaskId{5, 0},
                        "plan",
                        {static_cast<int>(absl::StatusCode::kNotFound), "open slide: not there"}});
  scheduler.answers = {
      Body(protocol::ResultFetched{TaskId{5, 0}, protocol::TaskState::kLeased, "", 0}),
      Body(protocol::ResultFetched{TaskId{5, 0}, protocol::TaskState::kFailed, "", 0}),
      Body(protocol::JobsDescribed{{row}})};
  Client client = scheduler.Make();
  const auto result = client.WaitForResult({5, 0});
  EXPECT_TRUE(absl::IsNotFound(result.status())) << result.status();
  EXPECT_EQ(MessageOf(result.status()), "open slide: not there");
}

TEST(Client, JoinsThePiecesOfALargeResult) {
  const auto piece = [](const std::string& text, std::uint64_t whole) {
    return Body(protocol::ResultFetched{TaskId{5, 0}, protocol::TaskState::kDone, text, whole});
  };
  Scripted scheduler;
  scheduler.answers = {piece("a plan ", 20), piece("of many ", 20), piece("words", 20)};
  EXPECT_EQ(*scheduler.Make().WaitForResult({5, 0}), "a plan of many words");
  Scripted changing;
  changing.answers = {piece("a plan ", 20), piece("of another", 30)};
  EXPECT_TRUE(absl::IsUnavailable(changing.Make().FetchResult({5, 0}).status()));
  Scripted empty;
  empty.answers = {piece("a plan ", 20), piece("", 20)};
  EXPECT_TRUE(absl::IsUnavailable(empty.Make().FetchResult({5, 0}).status()));
}

TEST(Client, PassesErrorsOnAndRefusesAnswersOfAnotherKind) {
  Scripted scheduler;
  scheduler.answers = {
      absl::PermissionDeniedError("not yours"),
      Body(protocol::RequestFailed{{static_cast<int>(absl::StatusCode::kNotFound), "no job"}}),
      Body(protocol::JobRetried{3}), Body(protocol::JobRetried{3})};
  Client client = scheduler.Make();
  EXPECT_TRUE(absl::IsPermissionDenied(client.CancelJob(1)));
  EXPECT_TRUE(absl::IsNotFound(client.CancelJob(1)));
  EXPECT_TRUE(absl::IsInternal(client.CancelJob(1)));
  EXPECT_EQ(*client.RetryJob(1), 3u);
}

TEST(Outcome, BecomesAStatusWhateverItsNumber) {
  EXPECT_TRUE(StatusOf({0, ""}).ok());
  EXPECT_TRUE(absl::IsDataLoss(StatusOf({15, "x"})));
  EXPECT_FALSE(StatusOf({-3, "x"}).ok());
  EXPECT_FALSE(StatusOf({4711, "x"}).ok());
}

}  // namespace
}  // namespace patchbay::client

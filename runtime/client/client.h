// The interface with which a user's program submits and watches jobs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::protocol {
struct Body;
}

namespace patchbay::client {

inline constexpr std::int64_t kRequestTimeoutMs = 30'000;

/// Milliseconds from one look at a job or a result to the next, when it was waited for so long: an
/// end is noticed late by a hundredth of the wait, or 5 ms, and a long wait asks twenty times a
/// second.
constexpr TimeMs PauseAfter(TimeMs waited) { return std::clamp<TimeMs>(waited / 100, 5, 50); }

/// Not thread-safe: use it from one thread, or under a lock.
class Client {
 public:
  /// `key_file`, a path or /proc/self/fd/N, names the cluster and authenticates the client. All
  /// waits, including this one, end with Cancelled soon after `keep_waiting` returns false
  /// (RequestClient::Call).
  static StatusOr<Client> Connect(const std::string& key_file,
                                  std::function<bool()> keep_waiting = {});
  /// Over another way of asking; tests play the scheduler with it.
  using Call = std::function<StatusOr<protocol::Body>(protocol::Body, std::int64_t timeout_ms)>;
  explicit Client(Call call) : call_(std::move(call)) {}

  /// The same submission_key gives the same job; an empty one is filled with a random key.
  StatusOr<JobId> SubmitJob(protocol::SubmitJob job);
  /// Rows of the named jobs, at most 200.
  StatusOr<std::vector<protocol::JobRow>> DescribeJobs(const std::vector<JobId>& jobs);
  /// All jobs that the key may see, newest first; sends as many requests as needed.
  StatusOr<std::vector<protocol::JobRow>> DescribeAllJobs();
  /// NotFound for a job the scheduler does not know.
  StatusOr<protocol::JobRow> DescribeJob(JobId job);
  /// Looks until the job has ended or `keep_waiting` returns false (Cancelled), with PauseAfter
  /// between looks. `watch` is called with every row.
  StatusOr<protocol::JobRow> Wait(JobId job,
                                  const std::function<void(const protocol::JobRow&)>& watch = {},
                                  const std::function<bool()>& keep_waiting = {});
  /// FailedPrecondition when the job has ended otherwise.
  Status CancelJob(JobId job);
  /// Sets its priority, or holds or releases it. FailedPrecondition when the job has ended.
  Status ChangeJob(const protocol::ChangeJob& change);
  /// Drains or resumes a node, as an operator.
  Status ChangeNode(const protocol::ChangeNode& change);
  /// The browser that shows the code sees what this key may see.
  Status AdmitBrowser(std::string code);
  /// Why the job waits; no cause: it does not.
  StatusOr<protocol::JobExplained> ExplainJob(JobId job);
  /// The policy of teams from now on; its warnings. As an operator.
  StatusOr<std::vector<std::string>> ApplyTeams(protocol::ApplyTeams policy);
  StatusOr<protocol::TeamsDescribed> DescribeTeams();
  /// How many tasks were made ready again. FailedPrecondition for a cancelled stream.
  StatusOr<std::uint64_t> RetryJob(JobId job);
  StatusOr<protocol::ResultFetched> FetchResult(TaskId task);
  /// Waits until the task is done and returns its result; the task's own error when it failed.
  StatusOr<std::string> WaitForResult(TaskId task, const std::function<bool()>& keep_waiting = {});
  StatusOr<std::vector<protocol::LogsFetched::Line>> FetchLogs(JobId job, std::uint64_t after);
  StatusOr<protocol::ClusterDescribed> DescribeCluster();
  /// Rows of hours from the one of `since` on, in seconds since 1970; sends as many requests as
  /// needed.
  StatusOr<std::vector<protocol::UsageRow>> FetchUsage(std::int64_t since);
  Status ReloadKeys();
  Status ShutDown();

 private:
  template <typename Fact>
  StatusOr<Fact> Ask(protocol::Body command);

  Status FailureOf(TaskId task, protocol::TaskState state);

  Call call_;
};

/// A line of a job's log with its reason.
std::string TextOf(const protocol::LogsFetched::Line& line, const SubjectNames& names = {});

/// True for kDone, kFailed, kPartlyFailed and kCancelled.
bool HasEnded(protocol::JobState state);

}  // namespace patchbay::client

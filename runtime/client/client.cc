#include "runtime/client/client.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>
#include <variant>

#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/control/session.h"
#include "runtime/wire/protocol/envelope.h"

namespace patchbay::client {

using protocol::Body;

namespace {
constexpr std::uint64_t kMaxResult = protocol::kMaxResultBytes;
}  // namespace

bool HasEnded(protocol::JobState state) {
  return state != protocol::JobState::kQueued && state != protocol::JobState::kRunning;
}

std::string TextOf(const protocol::LogsFetched::Line& line, const SubjectNames& names) {
  if (line.outcome.code == 0) return line.text;
  return StrCat(line.text, ": ", patchbay::TextOf(line.outcome, names));
}

StatusOr<Client> Client::Connect(const std::string& key_file, std::function<bool()> keep_waiting) {
  PB_ASSIGN_OR_RETURN(const control::KeyFile key, control::ReadKeyFile(key_file));
  PB_ASSIGN_OR_RETURN(std::unique_ptr<control::RequestClient> opened,
                      control::RequestClient::Open(key, kRequestTimeoutMs, keep_waiting));
  // A child made by fork() has neither the thread nor the right to the sockets: there it only
  // leaks.
  const pid_t owner = getpid();
  const std::shared_ptr<control::RequestClient> requests(opened.release(),
                                                         [owner](control::RequestClient* client) {
                                                           if (getpid() == owner) delete client;
                                                         });
  return Client([requests, owner, keep_waiting = std::move(keep_waiting)](
                    Body command, std::int64_t timeout_ms) -> StatusOr<Body> {
    if (getpid() != owner) {
      return FailedPrecondition("ask scheduler: the connection belongs to process ", owner,
                                ", not to its fork");
    }
    return requests->Call(std::move(command), timeout_ms, keep_waiting);
  });
}

template <typename Fact>
StatusOr<Fact> Client::Ask(Body command) {
  PB_ASSIGN_OR_RETURN(Body answer, call_(std::move(command), kRequestTimeoutMs));
  if (auto* failed = std::get_if<protocol::RequestFailed>(&answer)) {
    return StatusOf(failed->outcome);
  }
  if (auto* fact = std::get_if<Fact>(&answer)) return std::move(*fact);
  return Internal("ask scheduler: unexpected answer type");
}

StatusOr<JobId> Client::SubmitJob(protocol::SubmitJob job) {
  if (job.submission_key.empty())
    job.submission_key = StrCat(Hex64(RandomU64()), Hex64(RandomU64()));
  PB_ASSIGN_OR_RETURN(const auto submitted, Ask<protocol::JobSubmitted>(std::move(job)));
  return submitted.job;
}

StatusOr<std::vector<protocol::JobRow>> Client::DescribeJobs(const std::vector<JobId>& jobs) {
  PB_ASSIGN_OR_RETURN(auto described,
                      Ask<protocol::JobsDescribed>(protocol::DescribeJobs{jobs, 0}));
  return std::move(described.jobs);
}

StatusOr<std::vector<protocol::JobRow>> Client::DescribeAllJobs() {
  std::vector<protocol::JobRow> all;
  for (JobId before = 0;; before = all.back().job) {
    PB_ASSIGN_OR_RETURN(auto page,
                        Ask<protocol::JobsDescribed>(protocol::DescribeJobs{{}, before}));
    // A scheduler that does not know `before` returns the newest jobs again.
    if (page.jobs.empty() || (before != 0 && page.jobs.front().job >= before)) return all;
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(all));
  }
}

StatusOr<protocol::JobRow> Client::DescribeJob(JobId job) {
  PB_ASSIGN_OR_RETURN(auto rows, DescribeJobs({job}));
  for (protocol::JobRow& row : rows) {
    if (row.job == job) return std::move(row);
  }
  return NotFound("describe job: ", job, ": the scheduler does not know it");
}

namespace {

/// Between two looks of a wait that began at `begun`.
Status Pause(TimeMs begun, const std::function<bool()>& keep_waiting, std::string_view what) {
  if (keep_waiting && !keep_waiting()) return Cancelled(what, ": interrupted");
  const TimeMs pause = PauseAfter(SteadyClock().NowMs() - begun);
  std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  return absl::OkStatus();
}

}  // namespace

StatusOr<protocol::JobRow> Client::Wait(JobId job,
                                        const std::function<void(const protocol::JobRow&)>& watch,
                                        const std::function<bool()>& keep_waiting) {
  const TimeMs begun = SteadyClock().NowMs();
  for (;;) {
    PB_ASSIGN_OR_RETURN(protocol::JobRow row, DescribeJob(job));
    if (watch) watch(row);
    if (HasEnded(row.state)) return row;
    PB_RETURN_IF_ERROR(Pause(begun, keep_waiting, StrCat("wait for job ", job)));
  }
}

Status Client::CancelJob(JobId job) {
  return Ask<protocol::JobCancelled>(protocol::CancelJob{job}).status();
}

Status Client::ChangeJob(const protocol::ChangeJob& change) {
  return Ask<protocol::JobChanged>(change).status();
}

Status Client::ChangeNode(const protocol::ChangeNode& change) {
  return Ask<protocol::NodeChanged>(change).status();
}

Status Client::AdmitBrowser(std::string code) {
  return Ask<protocol::BrowserAdmitted>(protocol::AdmitBrowser{std::move(code)}).status();
}

StatusOr<protocol::JobExplained> Client::ExplainJob(JobId job) {
  return Ask<protocol::JobExplained>(protocol::ExplainJob{job});
}

StatusOr<std::vector<std::string>> Client::ApplyTeams(protocol::ApplyTeams policy) {
  PB_ASSIGN_OR_RETURN(auto applied, Ask<protocol::TeamsApplied>(std::move(policy)));
  return std::move(applied.warnings);
}

StatusOr<protocol::TeamsDescribed> Client::DescribeTeams() {
  return Ask<protocol::TeamsDescribed>(protocol::DescribeTeams{});
}

StatusOr<std::uint64_t> Client::RetryJob(JobId job) {
  PB_ASSIGN_OR_RETURN(const auto retried, Ask<protocol::JobRetried>(protocol::RetryJob{job}));
  return retried.tasks;
}

StatusOr<protocol::ResultFetched> Client::FetchResult(TaskId task) {
  PB_ASSIGN_OR_RETURN(auto fetched, Ask<protocol::ResultFetched>(protocol::FetchResult{task, 0}));
  task = fetched.task;  // where the last one was asked for
  while (fetched.result.size() < std::min<std::uint64_t>(fetched.result_bytes, kMaxResult)) {
    PB_ASSIGN_OR_RETURN(const auto more, Ask<protocol::ResultFetched>(
                                             protocol::FetchResult{task, fetched.result.size()}));
    if (more.result.empty() || more.result_bytes != fetched.result_bytes) {
      return Unavailable("fetch result: ", task.ToString(), ": it changed while it was read");
    }
    fetched.result += more.result;
  }
  return fetched;
}

StatusOr<std::string> Client::WaitForResult(TaskId task,
                                            const std::function<bool()>& keep_waiting) {
  const TimeMs begun = SteadyClock().NowMs();
  for (;;) {
    PB_ASSIGN_OR_RETURN(auto fetched, FetchResult(task));
    switch (fetched.state) {
      case protocol::TaskState::kDone:
        return std::move(fetched.result);
      case protocol::TaskState::kFailed:
      case protocol::TaskState::kCancelled:
      case protocol::TaskState::kQuarantined:
        return FailureOf(task, fetched.state);
      default:
        break;
    }
    PB_RETURN_IF_ERROR(Pause(begun, keep_waiting, StrCat("wait for task ", task.ToString())));
  }
}

/// The reason for a missing result of a task: its own error if the job's row still lists it. For
/// the last task of a job, which did not run: the first error of the job.
Status Client::FailureOf(TaskId task, protocol::TaskState state) {
  const auto row = DescribeJob(task.job);
  if (row.ok()) {
    for (const protocol::FailedTask& failed : row->failed) {
      const bool asked_for = failed.task == task || task.index == protocol::kLastTask;
      if (asked_for && failed.outcome.code != 0) return StatusOf(failed.outcome);
    }
  }
  const bool cancelled = state == protocol::TaskState::kCancelled;
  const std::string text =
      StrCat("wait for task ", task.ToString(), cancelled ? ": it was cancelled" : ": it failed");
  return cancelled ? Cancelled(text) : Internal(text);
}

StatusOr<std::vector<protocol::LogsFetched::Line>> Client::FetchLogs(JobId job,
                                                                     std::uint64_t after) {
  PB_ASSIGN_OR_RETURN(auto logs, Ask<protocol::LogsFetched>(protocol::FetchLogs{job, after}));
  return std::move(logs.lines);
}

StatusOr<std::vector<protocol::UsageRow>> Client::FetchUsage(std::int64_t since) {
  std::vector<protocol::UsageRow> all;
  while (true) {
    PB_ASSIGN_OR_RETURN(auto page,
                        Ask<protocol::UsageFetched>(protocol::FetchUsage{since, all.size()}));
    std::move(page.rows.begin(), page.rows.end(), std::back_inserter(all));
    if (page.complete || page.rows.empty()) return all;
  }
}

StatusOr<protocol::ClusterDescribed> Client::DescribeCluster() {
  return Ask<protocol::ClusterDescribed>(protocol::DescribeCluster{});
}

Status Client::ReloadKeys() { return Ask<protocol::KeysReloaded>(protocol::ReloadKeys{}).status(); }

Status Client::ShutDown() { return Ask<protocol::ShuttingDown>(protocol::ShutDown{}).status(); }

}  // namespace patchbay::client

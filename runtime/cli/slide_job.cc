#include "runtime/cli/slide_job.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/pid_stamp.h"
#include "runtime/base/strings.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/job_view.h"
#include "runtime/cli/paths.h"

namespace patchbay::cli {
namespace {

constexpr TimeMs kCancelLimitMs = 10'000;

/// Cancels and waits until nothing of the job writes any more. True when there was nothing left to
/// cancel.
bool CancelAndWait(client::Client& client, JobId job) {
  (void)client.CancelJob(job);  // one that has just ended cannot be
  const TimeMs deadline = SteadyClock().NowMs() + kCancelLimitMs;
  const auto row = client.Wait(job, {}, [deadline] { return SteadyClock().NowMs() < deadline; });
  return row.ok() && (row->state == protocol::JobState::kDone ||
                      row->state == protocol::JobState::kPartlyFailed);
}

/// Reads the list of slides that the job wrote down; leaves it empty when it is not there to be
/// read (another machine's folder): slides are called by number then.
void ReadSlides(SlideOrder& order) {
  const StatusOr<std::string> text = ReadFile(order.work + "/manifest.json", kMaxJsonBytes);
  if (!text.ok()) return;
  const StatusOr<Json> manifest = ParseJson(*text, order.kind + " manifest");
  if (!manifest.ok() || !manifest->is_object() || !manifest->contains("sources")) return;
  for (const Json& source : (*manifest)["sources"]) {
    if (source.is_string()) order.slides.push_back(source.get<std::string>());
  }
}

/// Replaces "OUT", as workers call the output folder, where it stands as a path.
void NameOut(std::string& text, const std::string& out) {
  constexpr std::string_view kName = "OUT";
  for (std::size_t at = 0; (at = text.find(kName, at)) != std::string::npos;) {
    const std::size_t end = at + kName.size();
    const bool begins = at == 0 || text[at - 1] == ' ';
    const bool ends = end == text.size() || text[end] == '/' || text[end] == ':';
    if (begins && ends) text.replace(at, kName.size(), out);
    at += begins && ends ? out.size() : kName.size();
  }
}

/// What the finished root task says.
void LearnPlan(client::Client& client, JobId job, SlideOrder& order) {
  const std::string what = order.kind + " plan";
  const StatusOr<protocol::ResultFetched> plan = client.FetchResult({job, 0});
  if (!plan.ok() || plan->state != protocol::TaskState::kDone) return;
  const StatusOr<Json> result = ParseJson(plan->result, what);
  if (!result.ok()) return;
  const StatusOr<std::string> key = JsonString(*result, "job_key", what);
  if (!key.ok()) return;
  const StatusOr<std::int64_t> slides = JsonInt(*result, "slides", what);
  if (slides.ok()) order.slide_count = *slides;
  order.work = StrCat(order.out, "/", order.staging, "/", *key);
  if (order.slides.empty()) ReadSlides(order);
}

/// The result of a task as JSON; one too large to travel is a file, which has then served.
StatusOr<Json> ResultOf(client::Client& client, TaskId task) {
  constexpr char kWhat[] = "result of the job";
  PB_ASSIGN_OR_RETURN(std::string text, client.WaitForResult(task, [] { return !Interrupted(); }));
  PB_ASSIGN_OR_RETURN(Json result, ParseJson(text, kWhat));
  if (!result.is_object() || !result.contains("result_file")) return result;
  PB_ASSIGN_OR_RETURN(const std::string path, JsonString(result, "result_file", kWhat));
  PB_ASSIGN_OR_RETURN(text, ReadFile(path, kMaxJsonBytes));
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return ParseJson(text, kWhat);
}

}  // namespace

StatusOr<SlideOrder> OrderSlides(const std::string& kind, const std::vector<std::string>& sources,
                                 const std::string& out) {
  SlideOrder order;
  order.kind = kind;
  order.staging = ".patchbay-" + kind;
  order.started_ns = SteadyNowNs();
  PB_ASSIGN_OR_RETURN(order.out, AbsolutePath(out));
  bool files_only = true;
  for (const std::string& source : sources) {
    PB_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(source));
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return absl::NotFoundError(StrCat(kind, ": ", source, ": no such file or folder"));
    }
    files_only = files_only && !std::filesystem::is_directory(path, error);
    order.sources.push_back(path);
  }
  std::sort(order.sources.begin(), order.sources.end());
  order.sources.erase(std::unique(order.sources.begin(), order.sources.end()), order.sources.end());
  if (files_only) order.slides = order.sources;
  order.manifest = {{"sources", order.sources}, {"out", order.out}};
  return order;
}

StatusOr<JobId> SubmitSlides(ClusterAccess& cluster, SlideOrder& order) {
  order.manifest["run"] = Hex64(RandomU64());
  if (cluster.embedded()) {  // the job ends with this command: others may see that it has
    const auto stamp = ThisPid();
    if (stamp.ok()) order.manifest["command"] = ToJson(*stamp);
  }
  protocol::SubmitJob submission;
  submission.kind = order.kind;
  submission.name = StrCat(order.kind, " of ", order.sources.size(), " sources");
  submission.root.op = order.kind + ".plan";
  submission.root.label = "plan";
  submission.root.payload = DumpJson(order.payload);
  submission.manifest = DumpJson(order.manifest);
  const StatusOr<JobId> submitted = cluster.client().SubmitJob(std::move(submission));
  if (!submitted.ok()) return cluster.Explain(submitted.status());
  return submitted;
}

ExitCode Detach(Terminal& terminal, JobId job) {
  terminal.Say(StrCat("job ", job));
  terminal.Result({{"job", job}});
  return ExitCode::kDone;
}

StatusOr<protocol::JobRow> WatchSlides(Session& session, ClusterAccess& cluster, JobId job,
                                       SlideOrder& order, const SlidesDoneText& done) {
  JobProgress progress(session.terminal);
  const auto watch = [&](const protocol::JobRow& seen) {
    progress.Show(seen, [&] { return done ? done(order) : std::string(); });
    if (order.work.empty() && seen.tasks_done > 0) LearnPlan(cluster.client(), job, order);
  };
  StatusOr<protocol::JobRow> row = cluster.client().Wait(job, watch, [] { return !Interrupted(); });
  session.terminal.EndProgress();
  if (row.ok()) return row;
  if (!Interrupted()) return cluster.Explain(row.status());
  if (!cluster.embedded()) {
    return absl::CancelledError(StrCat("interrupted: job ", job, " goes on in the cluster; see ",
                                       "`patchbay wait ", job, "`, `patchbay cancel ", job, "`"));
  }
  if (CancelAndWait(cluster.client(), job)) {
    return absl::CancelledError(StrCat("interrupted, but all was done: see ", order.out));
  }
  return absl::CancelledError(StrCat("interrupted: what is unfinished stays in ", order.out, "/",
                                     order.staging, "; the same command goes on from there"));
}

StatusOr<Json> SummaryOf(client::Client& client, JobId job) {
  PB_ASSIGN_OR_RETURN(const Json plan, ResultOf(client, {job, 0}));
  PB_ASSIGN_OR_RETURN(const std::int64_t index, JsonInt(plan, "summary_task", "plan of the job"));
  return ResultOf(client, {job, static_cast<std::uint32_t>(index)});
}

Status SlideJobFailure(ClusterAccess& cluster, const protocol::JobRow& job, const SlideOrder& order,
                       const Status& otherwise) {
  if (job.failed.empty()) return cluster.Explain(otherwise);
  std::string reasons;
  for (const protocol::FailedTask& task : job.failed) {
    reasons += StrCat(reasons.empty() ? "" : "; ", task.outcome.message);
  }
  (void)NameNumbered(reasons, "source", order.sources);
  (void)NameNumbered(reasons, "slide", order.slides);
  NameOut(reasons, order.out);
  return absl::InternalError(
      StrCat(order.kind, " into ", order.out, ": ", JobStateName(job.state), ": ", reasons));
}

}  // namespace patchbay::cli

#include "runtime/cli/jobs/slide_job.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/jobs/recorded_request.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/clock.h"
#include "runtime/core/counted.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/pid_stamp.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/file.h"

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

/// Reads the list of slides that the job wrote down; leaves it empty if it cannot be read (a folder
/// of another machine): slides are then named by number.
void ReadSlides(SlideJobRequest& order) {
  const StatusOr<std::string> text =
      ReadFile(Folders::OfThisUser(), order.work + "/manifest.json", kMaxJsonBytes);
  if (!text.ok()) return;
  const StatusOr<Json> manifest = ParseJson(*text, order.kind + " manifest");
  if (!manifest.ok() || !manifest->is_object() || !manifest->contains("sources")) return;
  for (const Json& source : (*manifest)["sources"]) {
    if (source.is_string()) order.slides.push_back(source.get<std::string>());
  }
}

/// The result of a task as JSON. A result too large for a message is in a file, which is removed
/// after it is read.
StatusOr<Json> ResultOf(client::Client& client, TaskId task) {
  constexpr char kWhat[] = "result of the job";
  PB_ASSIGN_OR_RETURN(std::string text, client.WaitForResult(task, [] { return !Interrupted(); }));
  PB_ASSIGN_OR_RETURN(Json result, ParseJson(text, kWhat));
  if (!result.is_object() || !result.contains("result_file")) return result;
  PB_ASSIGN_OR_RETURN(const std::string path, JsonString(result, "result_file", kWhat));
  PB_ASSIGN_OR_RETURN(text, ReadFile(Folders::OfThisUser(), path, kMaxJsonBytes));
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return ParseJson(text, kWhat);
}

}  // namespace

StatusOr<SlideJobRequest> RequestSlideJob(const std::string& kind,
                                          const std::vector<std::string>& sources,
                                          const std::string& out) {
  SlideJobRequest order;
  order.kind = kind;
  order.staging = ".patchbay-" + kind;
  order.started_ns = SteadyNowNs();
  PB_ASSIGN_OR_RETURN(order.out, client::AbsolutePath(out));
  PB_RETURN_IF_ERROR(CheckOutsideStores(kind, order.out, out));
  bool files_only = true;
  for (const std::string& source : sources) {
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(source));
    std::error_code error;
    const bool is_there = std::filesystem::exists(path, error);
    if (!is_there && !std::filesystem::is_directory(SplitSeriesPath(path).path, error)) {
      return absl::NotFoundError(StrCat(kind, ": ", source, ": no such file or folder"));
    }
    files_only = files_only && is_there && !std::filesystem::is_directory(path, error) &&
                 std::filesystem::path(path).filename() != "DICOMDIR";
    order.sources.push_back(path);
  }
  std::sort(order.sources.begin(), order.sources.end());
  order.sources.erase(std::unique(order.sources.begin(), order.sources.end()), order.sources.end());
  if (files_only) order.slides = order.sources;
  order.manifest = {{"sources", order.sources}, {"out", order.out}};
  return order;
}

void LearnPlan(client::Client& client, JobId job, SlideJobRequest& order) {
  const std::string what = order.kind + " plan";
  const StatusOr<protocol::ResultFetched> plan = client.FetchResult({job, 0});
  if (!plan.ok() || plan->state != protocol::TaskState::kDone) return;
  const StatusOr<Json> result = ParseJson(plan->result, what);
  if (!result.ok()) return;
  const StatusOr<std::string> key = JsonString(*result, "job_key", what);
  if (!key.ok()) return;
  const auto bytes = [&](const char* name) {
    return static_cast<std::uint64_t>(JsonInt(*result, name, what).value_or(0));
  };
  order.estimated_bytes = bytes("estimated_bytes");
  order.free_bytes = bytes("free_bytes");
  order.passed_over = SkippedOf(*result);
  const StatusOr<std::int64_t> slides = JsonInt(*result, "slides", what);
  if (slides.ok()) order.slide_count = *slides;
  order.job_key = *key;
  order.work = StrCat(order.out, "/", order.staging, "/", *key);
  if (order.slides.empty()) ReadSlides(order);
}

client::JobNames SlideJobRecord::Names() const {
  client::JobNames names;
  names.stores = stores;
  names.files = sources;
  names.slides = slides;
  names.out = out;
  return names;
}

StatusOr<protocol::JobRow> WatchSlides(Session& session, client::Cluster& cluster, JobId job,
                                       SlideJobRequest& order) {
  JobProgress progress(session.terminal);
  SlidesDone done;
  const auto watch = [&](const protocol::JobRow& seen) {
    const bool is_planned = order.work.empty() && seen.tasks_done != 0;
    if (is_planned) LearnPlan(cluster.client(), job, order);
    progress.Show(seen, [&] {
      return seen.state == protocol::JobState::kDone ? done.TextOfDone(order) : done.Text(order);
    });
    if (!is_planned) return;
    if (order.estimated_bytes <= order.free_bytes) return;
    session.terminal.Note(StrCat("warning: about ", HumanBytes(order.estimated_bytes),
                                 " will be written and ", HumanBytes(order.free_bytes),
                                 " are free in ", order.out));
  };
  StatusOr<protocol::JobRow> row = cluster.client().Wait(job, watch, [] { return !Interrupted(); });
  session.terminal.EndProgress();
  if (row.ok() && order.work.empty()) LearnPlan(cluster.client(), job, order);
  if (row.ok()) return row;
  if (!Interrupted()) return cluster.Explain(row.status());
  if (!cluster.embedded()) {
    return absl::CancelledError(StrCat("interrupted: job ", job, " continues on the cluster; see ",
                                       "`patchbay wait ", job, "`, `patchbay cancel ", job, "`"));
  }
  if (CancelAndWait(cluster.client(), job)) {
    return absl::CancelledError("interrupted, but everything was finished" +
                                (order.out.empty() ? std::string() : ": see " + order.out));
  }
  if (order.out.empty()) {
    return absl::CancelledError("interrupted: what is unfinished left the stores as they were; " +
                                std::string("run the same command again"));
  }
  const std::string staging = StrCat(order.out, "/", order.staging);
  std::error_code error;
  return absl::CancelledError(
      std::filesystem::is_directory(staging, error)
          ? StrCat("interrupted: unfinished work stays in ", staging,
                   "; run the same command to continue")
          : StrCat("interrupted: nothing is kept in ", order.out, "; run the same command again"));
}

const StagedJobKind* StagedKindOf(std::string_view kind) {
  for (const StagedJobKind* one : {&kIngestKind, &kSpectraKind, &kLabelsKind}) {
    if (one->kind == kind) return one;
  }
  return nullptr;
}

namespace {

/// Completes the manifest with the run of the command, and whether the job ends with it. A request
/// that is left to a cluster is recorded (recorded_request.h). If an earlier command with the same
/// request has ended and its job still runs there, that job is returned.
StatusOr<JobId> SubmitSlides(Session& session, client::Cluster& cluster, SlideJobRequest& order) {
  if (!cluster.embedded()) {
    const auto jobs = cluster.client().DescribeAllJobs();
    if (!jobs.ok()) return cluster.Explain(jobs.status());
    if (const auto job = JobToJoin(session.environment, *jobs, order)) {
      session.terminal.Note(
          StrCat("job ", *job,
                 " of an earlier command does the same work and is still running: ", "joining it"));
      return *job;
    }
  }
  order.manifest["run"] = Hex64(RandomU64());
  if (cluster.embedded()) {  // the job ends with this command: others may see that it has
    const auto stamp = ThisPid();
    if (stamp.ok()) order.manifest["command"] = ToJson(*stamp);
  }
  protocol::SubmitJob submission;
  submission.kind = order.kind;
  submission.name = StrCat(order.kind, " of ",
                           order.stores.empty() ? Counted(order.sources.size(), "source")
                                                : Counted(order.stores.size(), "store"));
  submission.root.op = order.kind + ".plan";
  submission.root.label = "plan";
  submission.root.payload = DumpJson(order.payload);
  submission.manifest = DumpJson(order.manifest);
  const StatusOr<JobId> submitted = cluster.client().SubmitJob(std::move(submission));
  if (!submitted.ok()) return cluster.Explain(submitted.status());
  if (cluster.embedded()) return submitted;
  const StatusOr<protocol::JobRow> row = cluster.client().DescribeJob(*submitted);
  const Status recorded = row.ok() ? RecordRequest(session.environment, *row, order) : row.status();
  if (!recorded.ok()) {
    session.terminal.Note(StrCat("`patchbay wait ", *submitted,
                                 "` will name slides by number: ", MessageOf(recorded)));
  }
  return submitted;
}

/// The result of the job's summary task.
StatusOr<Json> SummaryOf(client::Client& client, JobId job) {
  PB_ASSIGN_OR_RETURN(const Json plan, ResultOf(client, {job, 0}));
  PB_ASSIGN_OR_RETURN(const std::int64_t index, JsonInt(plan, "summary_task", "plan of the job"));
  return ResultOf(client, {job, static_cast<std::uint32_t>(index)});
}

/// Why a job has no summary, in one text; `otherwise` when its row does not know.
Status SlideJobFailure(client::Cluster& cluster, const protocol::JobRow& job,
                       const SlideJobRequest& order, const Status& otherwise) {
  if (job.failed.empty()) return cluster.Explain(otherwise);
  std::string reasons;
  for (const protocol::FailedTask& task : job.failed) {
    reasons += StrCat(reasons.empty() ? "" : "; ", TextOf(task.outcome, order.Names()));
  }
  return absl::InternalError(
      StrCat(order.kind, " into ", order.out, ": ", JobStateName(job.state), ": ", reasons));
}

/// After failures: reports the files that stay in the output folder, or removes those that a
/// command with an embedded cluster cannot use again.
void EndFailedSlides(Session& session, client::Cluster& cluster, const SlideJobRequest& order,
                     const protocol::JobRow& job) {
  std::error_code error;
  if (order.work.empty() || !std::filesystem::exists(order.work, error)) return;
  if (cluster.embedded() && StagedKindOf(order.kind)->goes_on_without_folder) {
    // No command can retry the job, and the next job does not need its list.
    (void)RunWorkerOp(order.kind + ".clean", {{"job_key", order.job_key}}, order.manifest);
    return;
  }
  session.terminal.Note(
      StrCat(cluster.embedded() ? std::string("the same command continues from the measured slides")
                                : StrCat("`patchbay retry ", job.job, "` tries them again"),
             "; ", order.work, " is kept for that, and may be removed"));
}

StatusOr<SlideReport> ReportOf(client::Client& client, const protocol::JobRow& job,
                               SlideJobRequest& order) {
  const StagedJobKind& kind = *StagedKindOf(order.kind);
  PB_ASSIGN_OR_RETURN(const Json summary, SummaryOf(client, job.job));
  order.slides = kind.slides(summary, order);
  SlideReport report;
  report.job = job.job;
  report.out = order.out;
  report.seconds = static_cast<double>(SteadyNowNs() - order.started_ns) * 1e-9;
  report.slides = order.slides;
  report.passed_over = order.passed_over;
  report.has_pseudonyms = order.manifest.contains("pseudonym_key");
  PB_RETURN_IF_ERROR(kind.fill(job, summary, report));
  return report;
}

}  // namespace

StatusOr<ExitCode> EndSlideJob(Session& session, client::Cluster& cluster, SlideJobRequest& order,
                               const protocol::JobRow& job, const Json* around) {
  const StagedJobKind& kind = *StagedKindOf(order.kind);
  if (kind.end != nullptr) return kind.end(session, cluster, order, job, around);
  StatusOr<SlideReport> report = ReportOf(cluster.client(), job, order);
  if (!report.ok()) return SlideJobFailure(cluster, job, order, report.status());
  for (FailedSource& failed : report->failed) {
    failed.outcome = Named(std::move(failed.outcome), order.Names());
  }
  report->listed = WriteFailedCsv(report->out, report->failed);
  PrintSkipped(session.terminal, report->passed_over);
  kind.say(session.terminal, *report);
  SayFailed(session.terminal, *report);
  Json result = around == nullptr ? ToJson(*report) : *around;
  if (around != nullptr) result["result"] = ToJson(*report);
  session.terminal.Result(result);
  if (report->failed.empty()) {
    PB_RETURN_IF_ERROR(report->listed);
    return ExitOf(job);
  }
  EndFailedSlides(session, cluster, order, job);
  return ExitCode::kSomeFailed;
}

StatusOr<ExitCode> RunStagedJob(Session& session, StagedRun run) {
  PB_ASSIGN_OR_RETURN(client::Cluster cluster,
                      OpenCluster(session, run.detach ? nullptr : run.own));
  if (run.settle) PB_RETURN_IF_ERROR(run.settle(cluster, run.request.payload));
  PB_ASSIGN_OR_RETURN(const JobId job, SubmitSlides(session, cluster, run.request));
  if (run.detach) {
    session.terminal.Say(StrCat("job ", job));
    session.terminal.Result({{"job", job}});
    return ExitCode::kDone;
  }
  PB_ASSIGN_OR_RETURN(const protocol::JobRow row, WatchSlides(session, cluster, job, run.request));
  return EndSlideJob(session, cluster, run.request, row, nullptr);
}

}  // namespace patchbay::cli

#include "runtime/cli/jobs/slide_job.h"

#include <algorithm>
#include <filesystem>
#include <span>
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
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/file.h"
#include "runtime/os/pid_stamp.h"

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
void ReadSlides(SlideJobRequest& request) {
  const StatusOr<std::string> text =
      ReadFile(Folders::OfThisUser(), request.work + "/manifest.json", kMaxJsonBytes);
  if (!text.ok()) return;
  const std::string what = request.kind + " manifest";
  const StatusOr<Json> json = ParseJson(*text, what);
  if (!json.ok()) return;
  auto manifest = FromJson<StagedManifest>(*json, what);
  if (manifest.ok()) request.slides = std::move(manifest->sources);
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
  SlideJobRequest request;
  request.kind = kind;
  request.staging = ".patchbay-" + kind;
  request.started_ns = SteadyNowNs();
  PB_ASSIGN_OR_RETURN(request.out, client::AbsolutePath(out));
  PB_RETURN_IF_ERROR(CheckOutsideStores(kind, request.out, out));
  bool files_only = true;
  for (const std::string& source : sources) {
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(source));
    std::error_code error;
    const bool is_there = std::filesystem::exists(path, error);
    if (!is_there && !std::filesystem::is_directory(SplitSeriesPath(path).path, error)) {
      return ErrorAbout(absl::StatusCode::kNotFound, kind, source, "no such file or folder");
    }
    files_only = files_only && is_there && !std::filesystem::is_directory(path, error) &&
                 std::filesystem::path(path).filename() != "DICOMDIR";
    request.sources.push_back(path);
  }
  std::sort(request.sources.begin(), request.sources.end());
  request.sources.erase(std::unique(request.sources.begin(), request.sources.end()),
                        request.sources.end());
  if (files_only) request.slides = request.sources;
  request.manifest.sources = request.sources;
  request.manifest.out = request.out;
  return request;
}

void LearnPlan(client::Client& client, JobId job, SlideJobRequest& request) {
  const std::string what = request.kind + " plan";
  const StatusOr<protocol::ResultFetched> plan = client.FetchResult({job, 0});
  if (!plan.ok() || plan->state != protocol::TaskState::kDone) return;
  const StatusOr<Json> result = ParseJson(plan->result, what);
  if (!result.ok()) return;
  auto planned = FromJson<PlannedJob>(*result, what);
  if (!planned.ok() || planned->job_key.empty()) return;
  request.plan = *std::move(planned);
  request.work = StrCat(request.out, "/", request.staging, "/", request.plan.job_key);
  if (request.slides.empty()) ReadSlides(request);
}

client::JobNames SlideJobRecord::Names() const {
  client::JobNames names;
  names.files = sources;
  for (const LabelRow& row : rows) {
    names.stores.push_back(row.store);
    names.files.push_back(row.file);
  }
  names.slides = slides;
  names.out = out;
  return names;
}

StatusOr<protocol::JobRow> WatchSlides(Session& session, client::Cluster& cluster, JobId job,
                                       SlideJobRequest& request) {
  JobProgress progress(session.terminal);
  SlidesDone done;
  const auto watch = [&](const protocol::JobRow& seen) {
    const bool is_planned = request.work.empty() && seen.tasks_done != 0;
    if (is_planned) LearnPlan(cluster.client(), job, request);
    progress.Show(seen, [&] {
      return seen.state == protocol::JobState::kDone ? done.TextOfDone(request)
                                                     : done.Text(request);
    });
    if (!is_planned) return;
    const auto& [needed, free] = std::pair(request.plan.estimated_bytes, request.plan.free_bytes);
    if (needed <= free) return;
    session.terminal.Note(StrCat("warning: about ", HumanBytes(needed), " will be written and ",
                                 HumanBytes(free), " are free in ", request.out));
  };
  StatusOr<protocol::JobRow> row = cluster.client().Wait(job, watch, [] { return !Interrupted(); });
  session.terminal.EndProgress();
  if (row.ok() && request.work.empty()) LearnPlan(cluster.client(), job, request);
  if (row.ok()) return row;
  if (!Interrupted()) return cluster.Explain(row.status());
  if (!cluster.embedded()) {
    return Cancelled("interrupted: job ", job, " continues on the cluster; see ", "`patchbay wait ",
                     job, "`, `patchbay cancel ", job, "`");
  }
  if (CancelAndWait(cluster.client(), job)) {
    return Cancelled("interrupted, but everything was finished" +
                     (request.out.empty() ? std::string() : ": see " + request.out));
  }
  if (request.out.empty()) {
    return Cancelled("interrupted: what is unfinished left the stores as they were; " +
                     std::string("run the same command again"));
  }
  const std::string staging = StrCat(request.out, "/", request.staging);
  std::error_code error;
  return Cancelled(std::filesystem::is_directory(staging, error)
                       ? StrCat("interrupted: unfinished work stays in ", staging,
                                "; run the same command to continue")
                       : StrCat("interrupted: nothing is kept in ", request.out,
                                "; run the same command again"));
}

const StagedJobKind* StagedKindOf(std::string_view kind) {
  for (const StagedJobKind* one : {&kConvertKind, &kIngestKind, &kSpectraKind, &kLabelsKind}) {
    if (one->kind == kind) return one;
  }
  return nullptr;
}

namespace {

/// Completes the manifest with the run of the command, and whether the job ends with it. A request
/// that is left to a cluster is recorded (recorded_request.h). If an earlier command with the same
/// request has ended and its job still runs there, that job is returned.
StatusOr<JobId> SubmitSlides(Session& session, client::Cluster& cluster, SlideJobRequest& request) {
  if (!cluster.embedded()) {
    const auto jobs = cluster.client().DescribeAllJobs();
    if (!jobs.ok()) return cluster.Explain(jobs.status());
    if (const auto job = JobToJoin(session.environment, *jobs, request)) {
      session.terminal.Note(
          StrCat("job ", *job,
                 " of an earlier command does the same work and is still running: ", "joining it"));
      return *job;
    }
  }
  request.manifest.run = RandomU64();
  if (cluster.embedded()) {  // the job ends with this command: others may see that it has
    const auto stamp = ThisPid();
    if (stamp.ok()) request.manifest.command = *stamp;
  }
  protocol::SubmitJob submission;
  submission.kind = request.kind;
  submission.priority = request.priority;
  submission.name = StrCat(request.kind, " of ",
                           request.rows.empty() ? Counted(request.sources.size(), "source")
                                                : Counted(request.rows.size(), "store"));
  submission.root.op = request.kind + ".plan";
  submission.root.label = "plan";
  submission.root.payload = DumpJson(request.payload);
  submission.manifest = DumpJson(JsonOf(request.manifest));
  const StatusOr<JobId> submitted = cluster.client().SubmitJob(std::move(submission));
  if (!submitted.ok()) return cluster.Explain(submitted.status());
  if (cluster.embedded()) return submitted;
  const StatusOr<protocol::JobRow> row = cluster.client().DescribeJob(*submitted);
  const Status recorded =
      row.ok() ? RecordRequest(session.environment, *row, request) : row.status();
  if (!recorded.ok()) {
    session.terminal.Note(StrCat("`patchbay wait ", *submitted,
                                 "` will name slides by number: ", MessageOf(recorded)));
  }
  return submitted;
}

/// The result of the job's summary task.
StatusOr<Json> SummaryOf(client::Client& client, JobId job) {
  PB_ASSIGN_OR_RETURN(const Json result, ResultOf(client, {job, 0}));
  PB_ASSIGN_OR_RETURN(const auto plan, FromJson<PlannedJob>(result, "plan of the job"));
  return ResultOf(client, {job, plan.summary_task});
}

/// The results of the rows of a job into stores that are there.
Json RowResults(client::Client& client, JobId job, std::size_t rows) {
  Json results = Json::array();
  for (std::size_t i = 1; i <= rows; ++i) {
    const auto result = client.FetchResult({job, static_cast<std::uint32_t>(i)});
    const bool is_done = result.ok() && result->state == protocol::TaskState::kDone;
    results.push_back(is_done ? ParseJson(result->result, "result of a row").value_or(Json())
                              : Json());
  }
  return results;
}

/// Why a job has no summary: the outcome of its first failed task, with the texts of the further
/// ones; `otherwise` when its row does not know.
Status SlideJobFailure(client::Cluster& cluster, const protocol::JobRow& job,
                       const SlideJobRequest& request, const Status& otherwise) {
  if (job.failed.empty()) return cluster.Explain(otherwise);
  const client::JobNames names = request.Names();
  Outcome outcome = Named(job.failed.front().outcome, names);
  for (const protocol::FailedTask& task : std::span(job.failed).subspan(1)) {
    outcome.cause += StrCat("; ", TextOf(task.outcome, names));
  }
  return Annotate(StatusOf(outcome),
                  StrCat(request.kind, " into ", request.out, ": ", JobStateName(job.state)));
}

/// After failures: reports the files that stay in the output folder, or removes those that a
/// command with an embedded cluster cannot use again.
void EndFailedSlides(Session& session, client::Cluster& cluster, const SlideJobRequest& request,
                     const protocol::JobRow& job) {
  std::error_code error;
  if (request.work.empty() || !std::filesystem::exists(request.work, error)) return;
  if (cluster.embedded() && StagedKindOf(request.kind)->goes_on_without_folder) {
    // No command can retry the job, and the next job does not need its list.
    (void)RunWorkerOp(request.kind + ".clean", JsonOf(StagePayload{request.plan.job_key}),
                      JsonOf(request.manifest));
    return;
  }
  session.terminal.Note(
      StrCat(cluster.embedded() ? std::string("the same command continues from the measured slides")
                                : StrCat("`patchbay retry ", job.job, "` tries them again"),
             "; ", request.work, " is kept for that; it is safe to delete"));
}

StatusOr<SlideReport> ReportOf(client::Client& client, const protocol::JobRow& job,
                               SlideJobRequest& request) {
  const StagedJobKind& kind = *StagedKindOf(request.kind);
  Json summary;
  if (request.out.empty()) {
    summary = RowResults(client, job.job, request.rows.size());
  } else {
    PB_ASSIGN_OR_RETURN(summary, SummaryOf(client, job.job));
  }
  if (kind.slides != nullptr) request.slides = kind.slides(summary, request);
  SlideReport report;
  report.job = job.job;
  report.out = request.out;
  report.seconds = static_cast<double>(SteadyNowNs() - request.started_ns) * 1e-9;
  report.slides = kind.slides == nullptr ? request.sources : request.slides;
  report.rows = request.rows;
  report.skipped_files = request.plan.skipped_files;
  report.has_pseudonyms = !request.manifest.pseudonym_key.empty();
  PB_RETURN_IF_ERROR(kind.fill(job, summary, report));
  return report;
}

}  // namespace

StatusOr<ExitCode> EndSlideJob(Session& session, client::Cluster& cluster, SlideJobRequest& request,
                               const protocol::JobRow& job, const Json* around) {
  StatusOr<SlideReport> report = ReportOf(cluster.client(), job, request);
  if (!report.ok()) return SlideJobFailure(cluster, job, request, report.status());
  for (FailedSource& failed : report->failed) {
    failed.outcome = Named(std::move(failed.outcome), request.Names());
  }
  report->failed.insert(report->failed.begin(), request.failed.begin(), request.failed.end());
  report->sources += request.failed.size();
  if (!report->out.empty()) report->listed = WriteFailedCsv(report->out, report->failed);
  PrintSkipped(session.terminal, report->skipped_files);
  for (const std::string& note : report->notes) session.terminal.Note(note);
  for (const std::string& line : report->lines) session.terminal.Say(line);
  SayFailed(session.terminal, *report);
  Json result = around == nullptr ? ToJson(*report) : *around;
  if (around != nullptr) result["result"] = ToJson(*report);
  if (!request.choice.is_null()) result["choice"] = request.choice;
  session.terminal.Result(result);
  if (report->failed.empty()) {
    PB_RETURN_IF_ERROR(report->listed);
    return ExitOf(job);
  }
  EndFailedSlides(session, cluster, request, job);
  const bool has_none = report->out.empty() && report->failed.size() == report->sources;
  return has_none ? ExitCode::kFailed : ExitCode::kSomeFailed;
}

StatusOr<ExitCode> RunStagedJob(Session& session, StagedRun run) {
  PB_ASSIGN_OR_RETURN(client::Cluster cluster,
                      OpenCluster(session, run.detach ? nullptr : run.own));
  if (run.settle) PB_RETURN_IF_ERROR(run.settle(cluster, run.request));
  run.request.priority = static_cast<std::int32_t>(run.own->priority);
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

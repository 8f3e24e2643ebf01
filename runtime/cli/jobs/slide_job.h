// Jobs from slides into an output folder (ingest, spectra): what they share from the arguments to
// the result.
//
// Such a job has a root task "<kind>.plan" whose result names {"job_key", "summary_task", "slides":
// how many}; it keeps its unfinished work in OUT/<staging>/<job key>/, with the list of its slides
// in manifest.json there ({"sources": [paths]}, in the order of slide numbers). A slide's tasks
// are those of the group of its number + 1.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/command.h"
#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/client/client.h"
#include "runtime/client/paths.h"
#include "runtime/core/clock.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// A job to be submitted, and what is learnt of it while it runs.
struct SlideJobRequest {
  std::string kind;     ///< "ingest", "spectra"
  std::string staging;  ///< name of the folder in `out` for what is unfinished
  std::vector<std::string> sources;
  std::string out;
  std::int64_t started_ns = 0;  ///< of the command, by SteadyNowNs
  Json payload, manifest;       ///< the manifest has "sources" and "out"; more may be added
  /// Files in the order of the job's slide numbers. Known at once when no source is a folder, else
  /// when the job has listed them.
  std::vector<std::string> slides;
  /// How many of them, once the root task is done.
  std::int64_t slide_count = 0;
  /// OUT/<staging>/<job key>, once the root task is done.
  std::string job_key, work;
  /// Estimated need of an ingest, and bytes free at that time; 0 when the plan does not say.
  std::uint64_t estimated_bytes = 0, free_bytes = 0;
  Json passed_over = Json::object();  ///< kind -> how many files in the folders are no sources

  client::JobNames Names() const;
};

/// Absolute, existing, sorted, each once. NotFound names a source that is not there.
StatusOr<SlideJobRequest> RequestSlideJob(const std::string& kind,
                                          const std::vector<std::string>& sources,
                                          const std::string& out);

/// Completes the manifest: which run of the command it is, and whether the job ends with it. An
/// order that is left to a cluster is recorded (recorded_request.h). There, the job of an earlier
/// command that has ended is the answer if it goes on and was asked for the same.
StatusOr<JobId> SubmitSlides(Session& session, client::Cluster& cluster, SlideJobRequest& order);

/// Takes what the root task found out into `order`, if that task has finished.
void LearnPlan(client::Client& client, JobId job, SlideJobRequest& order);

/// The end of a command that does not wait.
ExitCode Detach(Terminal& terminal, JobId job);

/// Shows progress until the job has ended. Interrupted, a job of an embedded cluster is cancelled
/// and its error says what stays; one of another cluster goes on, and the error says how to find
/// it.
StatusOr<protocol::JobRow> WatchSlides(Session& session, client::Cluster& cluster, JobId job,
                                       SlideJobRequest& order);

/// The result of the job's summary task.
StatusOr<Json> SummaryOf(client::Client& client, JobId job);

/// Why a job has no summary, in one text; `otherwise` when its row does not know.
Status SlideJobFailure(client::Cluster& cluster, const protocol::JobRow& job,
                       const SlideJobRequest& order, const Status& otherwise);

/// After failures: says what stays in the output folder, or removes what is of no use to a command
/// with a cluster of its own.
void EndFailedSlides(Session& session, client::Cluster& cluster, const SlideJobRequest& order,
                     const protocol::JobRow& job);

/// The end of a command that waited: failed.csv beside the results, the report on the terminal, and
/// the exit code, 3 when slides failed. `report` is a SlideReport with its SayReport and ToJson, or
/// why there is no summary to make it from. `around`: the object that gets the report as "result",
/// instead of the report being all.
template <typename Report>
StatusOr<ExitCode> EndSlideJob(Session& session, client::Cluster& cluster,
                               const SlideJobRequest& order, const protocol::JobRow& job,
                               StatusOr<Report> report, const Json* around) {
  if (!report.ok()) return SlideJobFailure(cluster, job, order, report.status());
  report->out = order.out;
  report->seconds = static_cast<double>(SteadyNowNs() - order.started_ns) * 1e-9;
  for (FailedSource& failed : report->failed) {
    failed.outcome = Named(std::move(failed.outcome), order.Names());
  }
  report->listed = WriteFailedCsv(report->out, report->failed);
  SayReport(session.terminal, *report);
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

}  // namespace patchbay::cli

// Jobs from slides into an output folder (ingest, spectra): what they share from the arguments to
// the result.
//
// Such a job has a root task "<kind>.plan" whose result names {"job_key", "summary_task", "slides":
// how many}; it keeps its unfinished work in OUT/<staging>/<job key>/, with the list of its slides
// in manifest.json there ({"sources": [paths]}, in the order of slide numbers). Labels of a slide's
// tasks begin "slide N".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/command.h"
#include "runtime/cli/failed_sources.h"
#include "runtime/cli/job_view.h"
#include "runtime/client/client.h"

namespace patchbay::cli {

/// A job to be submitted, and what is learnt of it while it runs.
struct SlideOrder {
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
  std::string work;
};

/// Absolute, existing, sorted, each once. NotFound names a source that is not there.
StatusOr<SlideOrder> OrderSlides(const std::string& kind, const std::vector<std::string>& sources,
                                 const std::string& out);

/// Completes the manifest: which run of the command it is, and whether the job ends with it.
StatusOr<JobId> SubmitSlides(ClusterAccess& cluster, SlideOrder& order);

/// The end of a command that does not wait.
ExitCode Detach(Terminal& terminal, JobId job);

/// What is done of how much ("slides 3/12"); "" = tasks, which an empty function says too.
using SlidesDoneText = std::function<std::string(const SlideOrder&)>;

/// Shows progress until the job has ended. Interrupted, a job of an embedded cluster is cancelled
/// and its error says what stays; one of another cluster goes on, and the error says how to find
/// it.
StatusOr<protocol::JobRow> WatchSlides(Session& session, ClusterAccess& cluster, JobId job,
                                       SlideOrder& order, const SlidesDoneText& done = {});

/// The result of the job's summary task.
StatusOr<Json> SummaryOf(client::Client& client, JobId job);

/// Why a job has no summary, in one text; `otherwise` when its row does not know.
Status SlideJobFailure(ClusterAccess& cluster, const protocol::JobRow& job, const SlideOrder& order,
                       const Status& otherwise);

/// The end of a command that waited: failed.csv beside the results, the report on the terminal, and
/// the exit code, 3 when some slides failed. `report` is a SlideReport with its SayReport and
/// ToJson, or why there is no summary to make it from.
template <typename Report>
StatusOr<ExitCode> EndSlideJob(Session& session, ClusterAccess& cluster, const SlideOrder& order,
                               const protocol::JobRow& job, StatusOr<Report> report) {
  if (!report.ok()) return SlideJobFailure(cluster, job, order, report.status());
  report->out = order.out;
  report->seconds = static_cast<double>(SteadyNowNs() - order.started_ns) * 1e-9;
  const Status listed = WriteFailedCsv(report->out, report->failed);
  SayReport(session.terminal, *report);
  session.terminal.Result(ToJson(*report));
  PB_RETURN_IF_ERROR(listed);
  return report->failed.empty() ? ExitOf(job) : ExitCode::kSomeFailed;
}

}  // namespace patchbay::cli

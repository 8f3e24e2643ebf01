// Code shared by the staged jobs (ingest, spectra, labels), from the arguments to the result.
//
// A job from slides into an output folder has a root task "<kind>.plan" whose result is a
// PlannedJob; it keeps its unfinished work in OUT/<staging>/<job key>/, with the list of its slides
// in the StagedManifest there. A slide's tasks are those of the group of its number
// + 1. A job into stores that are there (labels) has neither folder nor summary: each row's task
// publishes in its store, and its result is the row's report.
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
#include "runtime/core/fields.h"
#include "runtime/core/status.h"  // wide: from arguments to the report of a job
#include "runtime/format/json/json.h"
#include "runtime/model/jobs/job_manifest.h"

namespace patchbay::cli {

/// Record of a submitted job that the command keeps for `patchbay wait`, `job` and `logs`.
struct SlideJobRecord {
  std::string kind;     ///< "ingest", "spectra", "labels"
  std::string staging;  ///< name of the folder in `out` for what is unfinished
  std::string out;      ///< "" of a job into stores that are there
  std::vector<std::string> sources;
  std::vector<LabelRow> rows;  ///< rows of a job into stores that are there
  /// Files in the order of the job's slide numbers. Known at once when no source is a folder, else
  /// when the job has listed them.
  std::vector<std::string> slides;

  client::JobNames Names() const;

  static constexpr auto Fields() {
    using T = SlideJobRecord;
    return AsFullObject(Field("kind", &T::kind), Field("staging", &T::staging),
                        Field("out", &T::out), Field("sources", &T::sources),
                        Field("rows", &T::rows), Field("slides", &T::slides));
  }
};

/// A job to be submitted, and what is learnt of it while it runs.
struct SlideJobRequest : SlideJobRecord {
  std::int64_t started_ns = 0;  ///< start of the command, by SteadyNowNs
  std::int32_t priority = 0;
  Json payload;
  JobManifest manifest;
  std::vector<FailedSource> failed;  ///< sources that the job does not have
  Json choice;                       ///< by the command before it submitted; null: none
  PlannedJob plan;                   ///< once the root task is done
  std::string work;                  ///< OUT/<staging>/<job key>, once the root task is done
};

/// The request's sources are absolute, existing and sorted, each once. NotFound names a missing
/// source.
StatusOr<SlideJobRequest> RequestSlideJob(const std::string& kind,
                                          const std::vector<std::string>& sources,
                                          const std::string& out);

/// Stores the result of the root task in `request`, if that task has finished.
void LearnPlan(client::Client& client, JobId job, SlideJobRequest& request);

/// Shows progress until the job has ended. On an interrupt, a job of an embedded cluster is
/// cancelled and the error lists the files that stay; a job of another cluster continues, and the
/// error says how to find it.
StatusOr<protocol::JobRow> WatchSlides(Session& session, client::Cluster& cluster, JobId job,
                                       SlideJobRequest& request);

/// A kind of staged job by the hooks that are its own; a constant.
struct StagedJobKind {
  std::string_view kind;
  /// Fills `failed`, `sources`, `own`, `lines` and `notes` from the job's last row and its summary;
  /// the rest is known. `summary` is the result of the summary task; of a job into stores that are
  /// there, the list of its rows' results, null where there is none.
  Status (*fill)(const protocol::JobRow& job, const Json& summary, SlideReport& report);
  /// Files in the order of slide numbers: those of the request, or from the table that the job left
  /// beside its results. Null: the sources as named.
  std::vector<std::string> (*slides)(const Json& summary, const SlideJobRequest& request) = nullptr;
  /// Whether a file about a slide in the job's folder has the outcome. Null: each has.
  bool (*is_outcome)(const std::string& path) = nullptr;
  /// The next run of the command adopts what was finished without the job's folder.
  bool goes_on_without_folder = false;
};

extern const StagedJobKind kConvertKind, kIngestKind, kSpectraKind, kLabelsKind;

/// nullptr for other jobs.
const StagedJobKind* StagedKindOf(std::string_view kind);

/// A job to be run to its end.
struct StagedRun {
  SlideJobRequest request;
  OwnClusterArguments* own = nullptr;
  bool detach = false;
  /// Completes the request once the cluster is open, if not empty.
  std::function<Status(client::Cluster& cluster, SlideJobRequest& request)> settle = {};
};

/// The whole command, from the opened cluster to the report.
StatusOr<ExitCode> RunStagedJob(Session& session, StagedRun run);

/// Ends a command that waited: writes failed.csv next to the results, prints the report, and
/// returns the exit code, 3 when slides failed, 1 when no store got its result. `around`: an object
/// to put the report into, as "result"; otherwise the report is the whole JSON.
StatusOr<ExitCode> EndSlideJob(Session& session, client::Cluster& cluster, SlideJobRequest& request,
                               const protocol::JobRow& job, const Json* around);

}  // namespace patchbay::cli

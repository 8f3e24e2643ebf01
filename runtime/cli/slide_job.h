// Jobs from slides into an output folder (ingest, spectra): what they share from the arguments to
// the result.
//
// Such a job has a root task "<kind>.plan" whose result names {"job_key", "summary_task", "slides":
// how many}; it keeps its unfinished work in OUT/<staging>/<job key>/, with the list of its slides
// in manifest.json there ({"sources": [paths]}, in the order of slide numbers). Labels of a slide's
// tasks begin "slide N".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/command.h"
#include "runtime/client/client.h"

namespace patchbay::cli {

/// A job to be submitted, and what is learnt of it while it runs.
struct SlideOrder {
  std::string kind;     ///< "ingest", "spectra"
  std::string staging;  ///< name of the folder in `out` for what is unfinished
  std::vector<std::string> sources;
  std::string out;
  Json payload, manifest;  ///< the manifest has "sources" and "out"; more may be added
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

StatusOr<JobId> SubmitSlides(ClusterAccess& cluster, const SlideOrder& order);

/// `show` sees every row until the job has ended. Interrupted, a job of an embedded cluster is
/// cancelled and its error says what stays; one of another cluster goes on, and the error says how
/// to find it.
StatusOr<protocol::JobRow> WatchSlides(
    Session& session, ClusterAccess& cluster, JobId job, SlideOrder& order,
    const std::function<void(const protocol::JobRow&, const SlideOrder&)>& show);

/// The result of the job's summary task.
StatusOr<Json> SummaryOf(client::Client& client, JobId job);

/// Why a job has no summary, in one text; `otherwise` when its row does not know.
Status SlideJobFailure(ClusterAccess& cluster, const protocol::JobRow& job, const SlideOrder& order,
                       const Status& otherwise);

}  // namespace patchbay::cli

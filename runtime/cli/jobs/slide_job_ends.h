// How the command of each kind of job over slides ends, for those who wait for a job that another
// command submitted.
#pragma once

#include "runtime/cli/jobs/slide_job.h"

namespace patchbay::cli {

/// EndSlideJob with the job's own report. `around`: see there.
StatusOr<ExitCode> EndIngest(Session& session, client::Cluster& cluster, SlideJobRequest& order,
                             const protocol::JobRow& job, const Json* around);
StatusOr<ExitCode> EndSpectra(Session& session, client::Cluster& cluster, SlideJobRequest& order,
                              const protocol::JobRow& job, const Json* around);

}  // namespace patchbay::cli

// The record of a job over slides that a command left to a cluster: the scheduler knows numbers
// only, and `patchbay wait`, `job` and `logs` shall name files as the command would have.
//
//   PATCHBAY_HOME/jobs/<job>-<time of submission>.json   owner-only
#pragma once

#include <optional>
#include <vector>

#include "runtime/cli/jobs/slide_job.h"
#include "runtime/client/environment.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

Status RecordRequest(const client::Environment& environment, const protocol::JobRow& job,
                     const SlideJobRequest& order);

/// The job among `jobs` that goes on and was asked for exactly what `order` asks for, by a command
/// of this home that has ended since: its order is recorded anew, for this process. Nothing when
/// there is none, and for a command that still lives.
std::optional<JobId> JobToJoin(const client::Environment& environment,
                               const std::vector<protocol::JobRow>& jobs,
                               const SlideJobRequest& order);

/// Nothing for another kind of job, and for one that another user or machine submitted.
std::optional<SlideJobRequest> RecordedRequest(const client::Environment& environment,
                                               const protocol::JobRow& job);

}  // namespace patchbay::cli

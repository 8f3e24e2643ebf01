// Whether a submission may join a stream job that runs already: it must ask for the same.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

/// The terms under which a stream job was submitted, for comparison.
struct SubmittedRun {
  JobId job = 0;
  const std::string& payload;
  const std::string& manifest;
  std::uint32_t world_size = 1;
};

/// FailedPrecondition naming the difference: the number of ranks, the dataset, the start, or the
/// key of the config. Defaults that the cluster offered when the job was submitted are ignored.
Status CheckJoin(const protocol::SubmitJob& asked, const SubmittedRun& run);

}  // namespace patchbay::scheduler

// The core's counts.
#pragma once

#include <cstdint>

namespace patchbay::scheduler {

/// Counts for back-pressure and for tests; all are O(1) to read.
struct CoreGauges {
  std::uint64_t jobs = 0, tasks_ready = 0, leases = 0, workers = 0, streams = 0;
  std::uint64_t undurable_records = 0;  ///< the server stops reading peers while this is large
  std::uint64_t tasks_committed = 0, shards_counted = 0, leases_expired = 0, stale_reports = 0;
};

}  // namespace patchbay::scheduler

// Figures of the running core for operators, as plain values: they outlive it and name no user,
// path or image.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/ids.h"
#include "runtime/model/stream/stage_times.h"
#include "scheduler/policy/lending.h"
#include "scheduler/state/core_gauges.h"
#include "scheduler/state/stream_past.h"
#include "scheduler/state/usage_ledger.h"

namespace patchbay::scheduler {

/// A job that has not ended. Cores are in thousandths.
struct JobMeasures {
  JobId job = 0;
  std::uint64_t tasks_done = 0, tasks_failed = 0, tasks_running = 0, tasks_waiting = 0;
  std::uint64_t weight_done = 0, weight_total = 0;  ///< 0 of a stream
  std::uint32_t held_cpu_millis = 0, wanted_cpu_millis = 0;
};

/// The open jobs of a team, and its guarantee.
struct TeamMeasures {
  std::uint64_t held_cpu_millis = 0, wanted_cpu_millis = 0;
  /// Jobs that wait, by the code of JobExplained; past kMaxCausesAsked open jobs: "other".
  std::map<std::string_view, std::uint64_t> waiting;
  TeamLending lending = {};
};

/// A stream that is open.
struct StreamMeasures {
  JobId job = 0;
  std::uint64_t patches_made = 0;
  TimeMs stalled_ms = 0;
  std::uint32_t trainers = 0;
  std::array<std::uint32_t, 4> slots{};  ///< slots of all trainers, by protocol::SlotState
  StageTotals stages = {};
  std::uint64_t wait_p50_us = 0, wait_p99_us = 0;  ///< largest of any trainer
  std::uint64_t memory_bytes = 0;                  ///< resident memory of its trainers
};

struct NodeMeasures {
  std::string node;
  std::string_view state;  ///< as commands show it
  std::uint32_t cpus = 0, workers = 0, busy = 0;
  std::uint64_t memory_bytes = 0;  ///< resident memory of its workers
};

/// Counts are since the process started.
struct ClusterMeasures {
  CoreGauges gauges;
  std::uint64_t leases_granted = 0, tasks_failed = 0, task_retries = 0, shard_fences = 0;
  std::uint64_t tasks_returned = 0;                  ///< from lent cores
  std::uint64_t groups_done = 0, groups_failed = 0;  ///< slides and volumes of batch jobs
  std::array<std::uint64_t, 6> jobs{};               ///< jobs that are known, by protocol::JobState
  Usage usage;                                       ///< replayed charges included
  DeliveredBytes delivered = {};                     ///< by shards that were delivered
  std::map<std::string, TeamMeasures> teams;         ///< with open jobs or a guarantee
  ReclaimTimes reclaim_times;
  std::vector<JobMeasures> open_jobs;  ///< by number
  std::vector<StreamMeasures> streams;
  std::vector<NodeMeasures> nodes;
};

}  // namespace patchbay::scheduler

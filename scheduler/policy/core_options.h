// Times and limits of the scheduler's core.
#pragma once

#include <cstdint>

#include "runtime/core/clock.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

/// Times in milliseconds. The defaults are the contract; the simulator varies them. The journal
/// does not depend on them.
struct CoreOptions {
  /// A lease that shows no progress for so long is void and its worker is killed.
  TimeMs lease_ms = 10'000;
  /// An agent or worker silent for so long gets no new leases.
  TimeMs suspect_ms = 3'000;
  /// Silence after which the leases of a disconnected worker are given to others. Smaller: a dead
  /// node delays less; larger: less work is repeated after a short interruption.
  TimeMs lost_ms = 1'500;
  /// Silence after which an agent is no longer listed; its workers' leases have expired long
  /// before.
  TimeMs forget_node_ms = 60'000;
  /// A trainer silent for so long gets no new shards made.
  TimeMs suspend_trainer_ms = 1'500;
  /// Silence after which a trainer loses its leases. It may attach again with its slots.
  TimeMs forget_trainer_ms = 3'000;
  /// A stream job without any trainer for so long ends as cancelled.
  TimeMs abandon_stream_ms = 600'000;
  /// Time after which a stream with slots to fill fails if no worker may fill them; suspect_ms if
  /// no connected node could ever start such a worker.
  TimeMs no_worker_ms = 30'000;
  /// A worker whose delivery to a trainer failed gets none of its shards for so long.
  TimeMs bar_ms = 15'000;
  /// A shard its worker delivered but the trainer did not count for so long is fenced and made
  /// again.
  TimeMs count_wait_ms = 3'000;
  /// KillWorker, FenceShard and revoked shards are repeated at this interval until they are
  /// answered.
  TimeMs resend_ms = 1'000;
  /// First wait before a failed task is tried again; doubles with each attempt.
  TimeMs retry_ms = 500;
  TimeMs retry_max_ms = 30'000;
  /// Agents and trainers are told to send heartbeats at this interval.
  std::uint32_t heartbeat_ms = 500;
  /// Limit on the memory of open jobs, including the parts of results that are on their way.
  std::uint64_t open_bytes_max = kMaxOpenBytes;
};

}  // namespace patchbay::scheduler

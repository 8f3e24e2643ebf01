// Every bound of the scheduler, by name. Beyond one of them a request is refused with
// ResourceExhausted or InvalidArgument, or the oldest entry makes room; nothing grows without end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace patchbay::scheduler {

// Requests.
inline constexpr std::size_t kMaxNameBytes = 256;  ///< names, labels, kinds, submission keys
inline constexpr std::size_t kMaxPayloadBytes = 1u << 20;
inline constexpr std::size_t kMaxManifestBytes = 2u << 20;
inline constexpr std::size_t kMaxOutcomeBytes = 2048;  ///< longer texts are cut
inline constexpr std::size_t kMaxDependencies = 1u << 16;
inline constexpr std::uint64_t kMaxTaskWeight = 1ull << 44;
inline constexpr std::int32_t kMostPriority = 100;  ///< a job's highest; its negative is the least

inline constexpr std::size_t kMaxPolicyBytes = 1u << 20;
inline constexpr std::size_t kMaxJobsNamed = 10;  ///< in one refusal

// Jobs.
inline constexpr std::size_t kMaxOpenJobs = 100'000;
inline constexpr std::size_t kMaxFinishedJobs = 1'000;            ///< the oldest is forgotten
inline constexpr std::uint64_t kMaxFinishedBytes = 256ull << 20;  ///< as kMaxOpenBytes counts
inline constexpr std::size_t kMaxTasksPerJob = 2'000'000;
/// Memory of all open jobs: specs, results, failures. The server lowers it to an eighth of the
/// machine's memory. Submissions may take half of it, so that accepted jobs can finish.
inline constexpr std::uint64_t kMaxOpenBytes = 4ull << 30;
inline constexpr std::uint64_t kSubmitShare = 2;
/// Memory of a task in addition to its texts: entries of groups, queues and indexes.
inline constexpr std::uint64_t kTaskOverheadBytes = 256;
/// Open jobs whose reason to wait is looked for when many are shown at once.
inline constexpr std::size_t kMaxCausesAsked = 1'000;
inline constexpr std::size_t kMaxFailedListed = 1'000;
inline constexpr std::size_t kMaxJobsDescribed = 200;   ///< newest first, per reply
inline constexpr std::size_t kMaxFailedDescribed = 50;  ///< per job when several are described
inline constexpr std::size_t kMaxFailedDescribedBytes = 4u << 20;  ///< per reply
inline constexpr std::int64_t kFailuresShownSeconds = 3'600;
inline constexpr std::size_t kMaxFailuresShown = 200;  ///< with a cluster, the newest
inline constexpr std::size_t kMaxLogLines = 200;       ///< per job
inline constexpr std::size_t kMaxLogLineBytes = 512;
inline constexpr std::size_t kMaxLogBytes = 64u << 20;  ///< all logs; the oldest job's go first

// Usage.
inline constexpr std::int64_t kUsageOfJobsSeconds = 30 * 86'400;  ///< then rows of users remain
inline constexpr std::int64_t kUsageKeptSeconds = 90 * 86'400;
inline constexpr std::size_t kMaxUsageRows = 200'000;  ///< beyond, the oldest make room
inline constexpr std::uint64_t kMaxUsageBytes = 64ull << 20;
inline constexpr std::size_t kMaxUsageRowsSent = 5'000;  ///< per reply
/// Leases of one worker that have ended and whose cost is not known yet; the oldest makes room.
inline constexpr std::size_t kMaxLateCosts = 1'024;
/// Threads of a worker beside those that it computes with: read, deliver and one of a task.
inline constexpr std::int64_t kExtraThreads = 3;
/// Longest lease in milliseconds, where a former scheduler granted it.
inline constexpr std::int64_t kMostFormerLeaseMs = 86'400'000;
inline constexpr std::uint64_t kMostLeaseBytes = 1ull << 44;  ///< bytes charged for one lease

// The cluster.
inline constexpr std::size_t kMaxNodes = 1'024;  ///< the node that left longest ago makes room
inline constexpr std::size_t kMaxForgottenNodes = 1'024;  ///< left nodes with known dead processes
/// Host and GPUs of one, as its agent names them.
inline constexpr std::size_t kMaxNodeTextBytes = 8'192;
inline constexpr std::size_t kMaxWorkersPerNode = 1'024;
inline constexpr std::size_t kMaxPeers = 65'536;
inline constexpr std::size_t kMaxDeadIncarnations = 64;  ///< remembered per node, worker and rank
/// The most distinct resource requests among the queued tasks of one key; tasks with further ones
/// wait aside.
inline constexpr std::size_t kMaxResourceShapes = 64;

// Dispatch.
inline constexpr std::uint32_t kMaxQueueDepth = 512;  ///< batch tasks leased to one worker
inline constexpr std::int64_t kQueueTargetUs =
    100'000;  ///< work queued at one worker: ten round trips
inline constexpr std::int64_t kUnendingUs = INT64_MAX;     ///< a task that is known to be long
inline constexpr std::int64_t kUnknownTaskUs = 1'000'000;  ///< an op that was never measured
/// The most that a task is charged before it has run: one that runs longer is charged as it runs.
inline constexpr std::int64_t kMostEstimateUs = 1'000'000;
inline constexpr std::size_t kMaxMeasuredOps = 256;  ///< the longest unmeasured makes room
/// Memory that batch tasks leave to the planning of each worker, but at most one part in
/// kPlanningShare of a node's or worker's memory. Larger: longer lists can be planned, and fewer
/// tasks run at the same time.
inline constexpr std::uint64_t kPlanningBytes = 256ull << 20;
inline constexpr std::uint64_t kPlanningShare = 8;
/// Suspects that no worker could run, examined at once.
inline constexpr std::size_t kMaxSoloUnmet = 64;
inline constexpr std::size_t kAffinityHead = 8;     ///< tasks a worker may choose among
inline constexpr std::uint32_t kMaxSkips = 64;      ///< times that the first task may be skipped
inline constexpr std::size_t kMaxMakersKnown = 64;  ///< images of a stream whose maker is known
inline constexpr std::size_t kMaxLeaseMessageBytes = 5u << 20;
inline constexpr std::size_t kMaxLeaseInputBytes = 1u << 20;  ///< above, the worker fetches them
inline constexpr std::uint32_t kMinShardDepth = 2;            ///< one is made, the next is read
inline constexpr std::uint32_t kMaxShardDepth = 8;

// Shares. Larger: fewer changes of hands, and shares that are even only over longer times.
inline constexpr double kFairWindowUs = 50'000;  ///< lead of an account that still is no lead
inline constexpr double kFairLagUs = 200'000;    ///< most to catch up for one that was idle
inline constexpr double kBusyLagUs = 2'000'000;  ///< for one that had work, and got no room for it
inline constexpr double kCreditUs = 1'000'000;   ///< time for which a guarantee earns in advance
/// A task that has run for so long may run for much longer: nothing waits behind it.
inline constexpr std::int64_t kLongRunMs = 1'000;
inline constexpr std::int64_t kChargeAheadMs = 100;  ///< a running task, until the next tick
/// A trainer that waited for each batch for so long has less than it takes.
inline constexpr std::int64_t kStalledAfterMs = 1'000;
inline constexpr std::uint64_t kFewMillis = 100;  ///< cores below a share for which nobody stops
inline constexpr double kHalfCoreMillis = 500;    ///< a task's part beside shards
/// A team that had no work for so long is not thought to want its cores soon.
inline constexpr std::int64_t kLendAfterMs = 60'000;
/// A worker that makes shards runs a task of the same user at least so often, while the user's
/// tasks use no more than its shards.
inline constexpr std::int64_t kOwnTaskMs = 1'000;
inline constexpr double kOwnLeadUs = 1'000'000;   ///< the most that either has to catch up
inline constexpr std::size_t kMostLookedAt = 16;  ///< accounts that may keep a worker from shards

// Retries.
inline constexpr std::uint32_t kMaxTaskAttempts = 5;
inline constexpr std::uint32_t kMaxSoloDeaths = 3;  ///< crashes
inline constexpr std::uint32_t kMaxSoloEnds = 12;   ///< crashes, SIGKILL and unseen ends together
inline constexpr std::uint32_t kMaxShardAttempts = 16;
inline constexpr std::uint32_t kMaxVoidAttempts = 64;  ///< attempts at one shard that count as none

// Streams.
inline constexpr std::size_t kMaxStreams = 1'024;
inline constexpr std::size_t kMaxRingHolders = 1'024;       ///< processes that have one ring mapped
inline constexpr std::size_t kMaxUnitsHeld = 512;           ///< units that one consumer has
inline constexpr std::uint32_t kMaxUnitDeaths = 3;          ///< consumers that end with a unit
inline constexpr std::size_t kMaxDeadConsumers = 4'096;     ///< ranks of one stream
inline constexpr std::size_t kMaxEndpointBytes = 5u << 20;  ///< all ranks of a stream, in a message
inline constexpr std::size_t kMaxTrainersWithDrops = 64;    ///< with drops to show; then the oldest
                                                            ///< job's are forgotten
inline constexpr std::size_t kMaxPeerTextBytes = 160;  ///< an address or a reason; longer is cut
}  // namespace patchbay::scheduler

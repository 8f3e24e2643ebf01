// Values that several control messages carry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace patchbay::protocol {

/// Resources that a task needs while it runs.
struct Resources {
  std::uint32_t cpu_millis = 1000;  ///< 1000 = one core
  std::uint32_t gpus = 0;
  std::uint64_t memory_bytes = 0;
  bool operator==(const Resources&) const = default;
};

/// The specification of a task, as a job or another task submits it. `depends_on` are indices in
/// the same job.
struct TaskSpec {
  std::string op;       ///< a registered task op: "noop", "stream.plan", "ingest.shard", ...
  std::string payload;  ///< JSON, defined by the op; never a path (see manifest)
  Resources resources;
  std::vector<std::uint32_t> depends_on;  ///< their results become `inputs`, in this order
  /// false: runs when every dependency succeeded, is cancelled when one did not. true: runs once
  /// every dependency has ended in whatever state; the input of one that did not succeed is empty.
  /// true with an empty depends_on: runs once every other task of the job has ended (the summary).
  bool after_failures = false;
  /// 0 = the job; tasks of one group (one slide) fail together and leave others alone.
  std::uint32_t group = 0;
  std::string label;         ///< short, no PHI: shown in `patchbay job ID`
  std::uint64_t weight = 1;  ///< share of the job's progress (bytes, pixels)
  bool operator==(const TaskSpec&) const = default;
};

/// Costs of one task or shard, as its worker measured them.
struct WorkCost {
  std::int64_t cpu_us = 0;  ///< processor time of the threads that worked on it
  std::int64_t gpu_us = 0;  ///< time that the device was busy with it
  std::uint64_t bytes_read = 0, bytes_delivered = 0;
  bool operator==(const WorkCost&) const = default;
};

/// States of a job; the last four are final. kPartlyFailed: some groups of tasks failed, others did
/// not.
enum class JobState : std::uint8_t { kQueued, kRunning, kDone, kFailed, kPartlyFailed, kCancelled };
/// States of a task; the last four are final until a retry. kWaiting: for its dependencies.
/// kQuarantined: it was alone on workers that died, three times.
enum class TaskState : std::uint8_t {
  kWaiting,
  kReady,
  kLeased,
  kDone,
  kFailed,
  kCancelled,
  kQuarantined
};

/// A GPU that a node offers.
struct Gpu {
  std::string uuid;
  std::string name;
  std::uint64_t memory_bytes = 0;
  bool operator==(const Gpu&) const = default;
};

/// Connections and shards that a trainer's data path dropped since it attached, and why: the whole
/// list, again when it changed.
struct PeersDropped {
  /// The drops of one host for one reason.
  struct Item {
    std::string address;  ///< numeric, without a port: connections of one host count together
    std::string reason;
    std::uint64_t times = 0;
    std::int64_t last_at = 0;  ///< seconds since 1970
    bool operator==(const Item&) const = default;
  };
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::vector<Item> items;  ///< at most kMaxDroppedPeers
  bool operator==(const PeersDropped&) const = default;
};

}  // namespace patchbay::protocol

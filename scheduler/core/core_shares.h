// Cores that jobs hold and want, for people. Private to scheduler/core.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "scheduler/core/lease_book.h"
#include "scheduler/core/worker_table.h"
#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {

/// Counts on demand, at most once in kShareAgeMs, the workers whose leases changed. A worker's core
/// counts for the task that it runs and for the shard that it makes, half for each when it has
/// both; planning takes no core.
class CoreShares {
 public:
  /// In thousandths of a core.
  struct Share {
    std::uint32_t wanted = 0, held = 0;
  };
  static constexpr TimeMs kShareAgeMs = 100;

  CoreShares(const EventContext& event, WorkerTable& worker_table, const LeaseBook& book,
             const JobTable& table)
      : event_(event), worker_table_(worker_table), book_(book), table_(table) {}

  /// `stream`: of the job; null when it has none open. A job wants no more than there is.
  Share Of(const Job& job, const Stream* stream);

  /// The next Held() counts anew, for an answer that must be true now.
  void LookAgain() { counted_at_ = event_.now - kShareAgeMs; }
  /// Rises with each count.
  std::uint64_t counts() const { return counts_; }
  struct Holding {
    std::uint32_t millis = 0, parts = 0;  ///< parts: workers' cores that are summed in it
  };
  /// By job, of those that hold any.
  const std::unordered_map<JobId, Holding>& Held();

 private:
  /// Jobs that hold a part of a worker's core; 0 = none.
  struct Parts {
    JobId runs = 0, makes = 0;
    std::uint32_t runs_millis = 0, makes_millis = 0;
    bool operator==(const Parts&) const = default;
  };
  void Count();
  Parts PartsOf(const Worker& worker) const;
  void Add(JobId job, std::uint32_t millis);
  void Remove(JobId job, std::uint32_t millis);
  static bool KnowsPace(const Stream& stream, const Trainer& trainer);
  std::uint64_t WantedBy(const Stream& stream, const Trainer& trainer) const;

  const EventContext& event_;
  WorkerTable& worker_table_;
  const LeaseBook& book_;
  const JobTable& table_;
  TimeMs counted_at_ = -kShareAgeMs;
  std::uint64_t counts_ = 0;
  std::uint64_t all_ = 0;  ///< all cores of the nodes that are up
  std::unordered_map<JobId, Holding> held_;
  std::vector<Parts> parts_;  ///< by worker
};

}  // namespace patchbay::scheduler

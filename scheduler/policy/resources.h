// Arithmetic on resource requests. A worker runs the batch tasks of a lane one at a time in lease
// order, so a lane occupies the maximum of its leases in each dimension, not their sum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/wire/protocol/messages.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

using protocol::Resources;

/// Orders needs by cores, then GPUs, then memory; the ready queue is in this order.
struct ResourcesLess {
  bool operator()(const Resources& a, const Resources& b) const {
    return std::tie(a.cpu_millis, a.gpus, a.memory_bytes) <
           std::tie(b.cpu_millis, b.gpus, b.memory_bytes);
  }
};

inline bool Fits(const Resources& need, const Resources& room) {
  return need.cpu_millis <= room.cpu_millis && need.gpus <= room.gpus &&
         need.memory_bytes <= room.memory_bytes;
}

inline Resources Largest(const Resources& a, const Resources& b) {
  return {std::max(a.cpu_millis, b.cpu_millis), std::max(a.gpus, b.gpus),
          std::max(a.memory_bytes, b.memory_bytes)};
}

/// The part of `memory_bytes` that batch tasks leave free, so that `workers` can plan at the same
/// time.
inline std::uint64_t PlanningReserve(std::uint64_t memory_bytes, std::size_t workers) {
  return std::min(memory_bytes / kPlanningShare, workers * kPlanningBytes);
}

/// The leases of one lane by their resource requests. There are few distinct ones, so Occupied is
/// cheap, and a lane that is empty keeps their memory: each grant adds to one.
class Occupancy {
 public:
  void Add(const Resources& need) {
    const auto at = Find(need);
    if (at == counts_.end()) {
      counts_.emplace_back(need, 1);
    } else {
      ++at->second;
    }
  }
  void Remove(const Resources& need) {
    const auto at = Find(need);
    if (at == counts_.end() || --at->second != 0) return;
    *at = counts_.back();
    counts_.pop_back();
  }
  void Clear() { counts_.clear(); }
  Resources Occupied() const {
    Resources most{0, 0, 0};
    for (const auto& [need, count] : counts_) most = Largest(most, need);
    return most;
  }

 private:
  using Counts = std::vector<std::pair<Resources, std::uint32_t>>;

  Counts::iterator Find(const Resources& need) {
    return std::find_if(counts_.begin(), counts_.end(),
                        [&](const auto& one) { return one.first == need; });
  }

  Counts counts_;
};

}  // namespace patchbay::scheduler

// Live leases by number.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/state/cluster_table.h"

namespace patchbay::scheduler {

/// A lease keeps its place in memory until it is erased; another then takes it over, since one
/// comes with each shard.
class LeaseTable {
 public:
  /// In no order.
  using Leases = absl::flat_hash_map<LeaseNumber, Lease*>;

  const Leases& all() const { return by_number_; }
  /// Null when there is no such lease.
  Lease* Find(const LeaseNumber& number) const {
    const auto it = by_number_.find(number);
    return it == by_number_.end() ? nullptr : it->second;
  }
  /// The lease must be there.
  Lease& At(const LeaseNumber& number) const { return *by_number_.at(number); }
  const Lease& Add(Lease&& lease) {
    if (spare_.empty()) spare_.push_back(&leases_.emplace_back());
    Lease* const added = spare_.back();
    spare_.pop_back();
    *added = std::move(lease);
    by_number_.emplace(added->number, added);
    return *added;
  }
  void Erase(const LeaseNumber& number) {
    const auto it = by_number_.find(number);
    if (it == by_number_.end()) return;
    it->second->result_parts = {};
    spare_.push_back(it->second);
    by_number_.erase(it);
  }

 private:
  Leases by_number_;
  std::deque<Lease> leases_;  ///< as many as there ever were at a time
  std::vector<Lease*> spare_;
};

}  // namespace patchbay::scheduler

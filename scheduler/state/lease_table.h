// Live leases by number.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/state/cluster_table.h"

namespace patchbay::scheduler {

/// Lease counters are dense: they are their own hash.
struct LeaseHash {
  std::size_t operator()(const LeaseNumber& n) const {
    return static_cast<std::size_t>(n.counter ^ (static_cast<std::uint64_t>(n.incarnation) << 40));
  }
};

/// A lease keeps its place in memory until it is erased; the next ones then take it over, since one
/// comes with each shard.
class LeaseTable {
 public:
  using Leases = std::unordered_map<LeaseNumber, Lease, LeaseHash>;

  const Leases& all() const { return leases_; }
  /// Null when there is no such lease.
  Lease* Find(const LeaseNumber& number) {
    const auto it = leases_.find(number);
    return it == leases_.end() ? nullptr : &it->second;
  }
  const Lease* Find(const LeaseNumber& number) const {
    const auto it = leases_.find(number);
    return it == leases_.end() ? nullptr : &it->second;
  }
  Lease& At(const LeaseNumber& number) { return leases_.at(number); }
  const Lease& At(const LeaseNumber& number) const { return leases_.at(number); }
  const Lease& Add(Lease&& lease) {
    const LeaseNumber number = lease.number;
    if (spare_.empty()) return leases_.emplace(number, std::move(lease)).first->second;
    Leases::node_type node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = number;
    node.mapped() = std::move(lease);
    return leases_.insert(std::move(node)).position->second;
  }
  void Erase(const LeaseNumber& number) {
    const auto it = leases_.find(number);
    if (it == leases_.end()) return;
    it->second.result_parts = {};
    Leases::node_type node = leases_.extract(it);
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
  }

 private:
  static constexpr std::size_t kMostSpare = 4'096;
  Leases leases_;
  std::vector<Leases::node_type> spare_;
};

}  // namespace patchbay::scheduler

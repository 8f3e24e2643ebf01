// Accounts that hold leases of one worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/policy/fair_share.h"

namespace patchbay::scheduler {

/// The cores of a worker that each account with leases of it holds: one core for shards, and for
/// tasks, which run one after another, the most that one of them needs. Few accounts have any.
class Holders {
 public:
  struct Entry {
    AccountId account = 0;
    std::uint32_t tasks = 0, shards = 0;
    std::uint32_t millis = 0;
  };

  /// Cores that the account would hold in addition with work of that need.
  std::uint32_t More(AccountId account, std::uint32_t need_millis) const {
    const auto entry = Find(account);
    const std::uint32_t held = entry == entries_.end() ? 0 : entry->millis;
    return need_millis > held ? need_millis - held : 0;
  }
  void Add(AccountId account, std::uint32_t need_millis, bool is_shard, FairShare& fair) {
    const std::uint32_t more = More(account, need_millis);
    auto entry = entries_.begin() + (Find(account) - entries_.cbegin());
    if (entry == entries_.end()) entry = entries_.insert(entry, {account});
    entry->millis += more;
    ++(is_shard ? entry->shards : entry->tasks);
    fair.Hold(account, more);
  }
  /// Its cores are freed with its last lease.
  void Remove(AccountId account, bool is_shard, FairShare& fair) {
    const auto entry = entries_.begin() + (Find(account) - entries_.cbegin());
    --(is_shard ? entry->shards : entry->tasks);
    if (entry->tasks + entry->shards != 0) return;
    fair.Release(account, entry->millis);
    entries_.erase(entry);
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry>::const_iterator Find(AccountId account) const {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const Entry& entry) { return entry.account == account; });
  }

  std::vector<Entry> entries_;
};

}  // namespace patchbay::scheduler

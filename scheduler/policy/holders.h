// Accounts that hold leases of one worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/policy/amounts.h"
#include "scheduler/policy/fair_share.h"
#include "scheduler/policy/resources.h"

namespace patchbay::scheduler {

/// The resources of a worker that each account with leases of it holds: of each, the most that one
/// of its shards and tasks, which run one after another, needs. Few accounts have any. The worker
/// is used for the most that one of them holds.
class Holders {
 public:
  struct Entry {
    AccountId account = 0;
    std::uint32_t tasks = 0, shards = 0;
    std::uint32_t tasks_millis = 0;  ///< cores: the most that one of its tasks needs
    Amounts held = {};
  };

  /// With what the account would hold in addition, and the worker be used for.
  Claim ClaimOf(AccountId account, const Resources& need) const {
    const auto entry = Find(account);
    Claim claim{AmountsOf(need)};
    claim.more = entry == entries_.end() ? claim.need : Beyond(claim.need, entry->held);
    claim.used = Beyond(claim.need, Used());
    return claim;
  }
  /// Cores, in thousandths, on which tasks of the account would run in addition.
  std::uint32_t MoreForTasks(AccountId account, const Resources& need) const {
    const auto entry = Find(account);
    const std::uint32_t has = entry == entries_.end() ? 0 : entry->tasks_millis;
    return need.cpu_millis - std::min(need.cpu_millis, has);
  }
  /// The rule that forbids the account such work here.
  std::optional<FairShare::Refusal> Forbids(AccountId account, const Resources& need,
                                            const FairShare& fair) const {
    const Claim claim = ClaimOf(account, need);
    if (auto refusal = fair.Forbids(account, claim)) return refusal;
    if (!fair.KeepsAny() || claim.used[kCores] != 0) return std::nullopt;
    for (const Entry& entry : entries_) {
      if (auto refusal = fair.Keeps(entry.account, account)) return refusal;
    }
    return std::nullopt;
  }
  bool Admits(AccountId account, const Resources& need, const FairShare& fair) const {
    return !Forbids(account, need, fair).has_value();
  }
  void Add(AccountId account, const Resources& need, bool is_shard, FairShare& fair) {
    const Claim claim = ClaimOf(account, need);
    auto entry = entries_.begin() + (Find(account) - entries_.cbegin());
    if (entry == entries_.end()) entry = entries_.insert(entry, {account});
    for (std::size_t of = 0; of < kResources; ++of) entry->held[of] += claim.more[of];
    ++(is_shard ? entry->shards : entry->tasks);
    if (!is_shard) RunOn(*entry, need, fair);
    fair.Hold(account, claim);
  }
  /// All that it holds is freed with its last lease.
  void Remove(AccountId account, bool is_shard, FairShare& fair) {
    const auto entry = entries_.begin() + (Find(account) - entries_.cbegin());
    --(is_shard ? entry->shards : entry->tasks);
    if (!is_shard && entry->tasks == 0) {
      fair.RunOn(account, -1, -std::int64_t{std::exchange(entry->tasks_millis, 0)});
    }
    if (entry->tasks + entry->shards != 0) return;
    const Amounts held = entry->held, before = Used();
    entries_.erase(entry);
    fair.Release(account, held, Beyond(before, Used()));
  }
  const std::vector<Entry>& entries() const { return entries_; }

  Amounts Used() const {
    Amounts most = {};
    for (const Entry& entry : entries_) {
      for (std::size_t of = 0; of < kResources; ++of) most[of] = std::max(most[of], entry.held[of]);
    }
    return most;
  }

 private:
  static void RunOn(Entry& entry, const Resources& need, FairShare& fair) {
    const std::uint32_t millis = std::max(entry.tasks_millis, need.cpu_millis);
    const std::uint32_t before = std::exchange(entry.tasks_millis, millis);
    fair.RunOn(entry.account, entry.tasks == 1 ? 1 : 0, std::int64_t{millis} - before);
  }
  std::vector<Entry>::const_iterator Find(AccountId account) const {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const Entry& entry) { return entry.account == account; });
  }

  std::vector<Entry> entries_;
};

}  // namespace patchbay::scheduler

// Streams with shards to make, in the order of service.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "scheduler/policy/fair_share.h"
#include "scheduler/state/cluster_table.h"
#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {

/// A stream with shards to make.
struct WantingStream {
  /// Higher priority, fewer leases, served longest ago, job.
  using Rank = std::tuple<std::int32_t, std::uint32_t, LeaseNumber, JobId>;

  Stream* stream = nullptr;
  AccountId account = kNoAccount;
  Rank rank;
  bool refused = false;  ///< no worker may make its shards
  bool blocked = false;  ///< until it changes itself
  bool capped = false;   ///< until its account may have one more core
  /// Load and worker where the look at all workers goes on, by numerics class.
  std::pair<std::uint32_t, WorkerId> looked_to[2] = {};
};

/// Accounts go by `fair`, the streams of one by rank. A change costs O(log streams). Invariant: it
/// has the open streams that want shards, as of their last Refresh.
class StreamOrder {
 public:
  explicit StreamOrder(FairShare& fair) : fair_(fair) {}

  /// The stream has changed, or was added; null: it is no longer open.
  void Refresh(JobId job, Stream* stream);
  /// All are to be offered all workers again.
  void ForgetRefusals();
  bool empty() const { return wanting_.empty(); }
  /// Calls visit(stream), the first to be served first, until it is true. It may change nothing of
  /// the order before it returns true.
  template <typename Visit>
  bool AnyInOrder(const Visit& visit) {
    return fair_.AnyInOrder(
        [&](AccountId account) {
          for (const auto& [rank, wanting] : places_.at(account)) {
            if (visit(*wanting)) return true;
          }
          return false;
        },
        WorkKind::kShards);
  }

 private:
  using Places = std::map<WantingStream::Rank, WantingStream*>;

  void Remove(std::unordered_map<JobId, WantingStream>::iterator wanting);

  FairShare& fair_;
  std::unordered_map<JobId, WantingStream> wanting_;
  std::unordered_map<AccountId, Places> places_;  ///< by account that has any
};

}  // namespace patchbay::scheduler

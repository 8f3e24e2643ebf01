// Streams with shards to make, in the order of service.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

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
  /// Whether no other stream wants shards, and that one does.
  bool IsAlone(JobId job) const { return wanting_.size() == 1 && wanting_.count(job) != 0; }
  /// Calls visit(stream), the first to be served first, until it is true; streams of GPU workers
  /// twice where their team has less GPUs than it is guaranteed. It may change nothing of
  /// the order before it returns true.
  template <typename Visit>
  bool AnyInOrder(const Visit& visit) {
    const auto any = [&](AccountId account, bool on_gpus) {
      for (const auto& [rank, wanting] : places_[account]) {
        const bool counts = !on_gpus || wanting->stream->numerics == Numerics::kCuda;
        if (counts && visit(*wanting)) return true;
      }
      return false;
    };
    return fair_.AnyShortInOrder(
               [&](AccountId account) {
                 return fair_.IsShort(account, {0, 1, 0}) && any(account, true);
               },
               WorkKind::kShards) ||
           fair_.AnyInOrder([&](AccountId account) { return any(account, false); },
                            WorkKind::kShards);
  }

 private:
  using Places = std::map<WantingStream::Rank, WantingStream*>;

  void Remove(std::unordered_map<JobId, WantingStream>::iterator wanting);

  FairShare& fair_;
  std::unordered_map<JobId, WantingStream> wanting_;
  std::vector<Places> places_;  ///< by account
};

}  // namespace patchbay::scheduler

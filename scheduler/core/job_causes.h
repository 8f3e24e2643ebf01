// The reasons that jobs wait. Private to scheduler/core.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/core_shares.h"
#include "scheduler/core/stream_dispatch.h"

namespace patchbay::scheduler {

/// Answers from the tables alone: one function a cause, in the order in which they are asked, the
/// first one that holds being the answer. A job waits when nothing of it runs and something could;
/// a job on hold always does.
class JobCauses {
 public:
  struct Cause {
    std::string_view code;  ///< one of the fixed list of configs/queue.md
    std::string held_by;    ///< its obstacle, with amounts; nothing of another's names
    std::string starts;     ///< the change that would start it
  };

  JobCauses(const EventContext& event, JournalBarrier& barrier, const FairShare& fair,
            WorkerTable& worker_table, const Recovery& recovery, BatchDispatch& batch,
            StreamBook& streams, StreamDispatch& dispatch, CoreShares& shares)
      : event_(event),
        barrier_(barrier),
        table_(barrier.table()),
        fair_(fair),
        worker_table_(worker_table),
        recovery_(recovery),
        batch_(batch),
        streams_(streams),
        dispatch_(dispatch),
        shares_(shares) {}

  /// Nothing for a job that has ended, or does not wait.
  std::optional<Cause> Of(const Job& job);
  /// The code alone, which takes less time; empty for nothing.
  std::string_view CodeOf(const Job& job);
  /// FailedPrecondition when no node has a worker for a task of that need, and none is awaited.
  Status CheckNeed(const Resources& need) const;
  /// The answer to ExplainJob.
  protocol::JobExplained Explain(const Job& job);

 private:
  using Found = std::optional<Cause>;
  /// Workers that could ever run the task, or make the shards.
  struct Able {
    bool any_worker = false, any = false;
    bool may_lease = false;         ///< one of them may be given leases now
    const Node* drained = nullptr;  ///< else: of one of them, if drained
    const Node* silent = nullptr;   ///< else: of one that does not answer
  };

  template <typename Can>
  Able Look(const Can& can) const;
  static Found OfAble(const Able& able);
  Found OfHold(const Job& job) const;
  Found OfPlace(const Job& job) const;
  Found OfTasks(const Job& job);
  Found OfNeed(const Job& job, const Resources& need, bool planning);
  Found OfRoom(const Job& job, const Resources& need, bool planning);
  Found OfStream(const Job& job, const Stream& stream);
  Found OfShards(const Job& job, const Stream& stream, const Trainer& trainer);
  std::vector<Worker*> WithRoom(const Resources& need, bool planning);
  Found OfReserved() const;
  Found OfRules(const Job& job, const Resources& need, const std::vector<Worker*>& workers) const;
  Found OfShare(const Job& job, const Resources& need, const std::vector<Worker*>& workers);
  Found OfOrder(const Job& job);
  /// Work that was handed back to the owners of its cores.
  static Cause Reclaimed(const Job& job);
  /// Cores that the jobs of an account hold.
  struct Holding {
    JobRank first;  ///< job that holds any
    std::uint64_t millis = 0;
    std::vector<std::pair<JobId, std::uint32_t>> jobs;  ///< some of them
  };
  const std::map<AccountId, Holding>& Holdings();
  std::string HeldBy(const Job& job);
  bool HasOwnBefore(const Job& job);

  const EventContext& event_;
  JournalBarrier& barrier_;
  const JobTable& table_;
  const FairShare& fair_;
  WorkerTable& worker_table_;
  const Recovery& recovery_;
  BatchDispatch& batch_;
  StreamBook& streams_;
  StreamDispatch& dispatch_;
  CoreShares& shares_;
  bool in_words_ = true;  ///< causes need their texts
  std::uint64_t summed_at_ = 0;
  std::map<AccountId, Holding> holdings_;  ///< as of that count
};

}  // namespace patchbay::scheduler

// Ready tasks of one lane to workers that have room.
#include <algorithm>
#include <utility>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/policy/limits.h"
#include "scheduler/state/lease_bytes.h"

namespace patchbay::scheduler {
namespace {

/// Open workers that are looked at in vain in one turn. Larger: of thousands of idle workers, the
/// few that can take some task are found sooner; smaller: a turn takes less time.
constexpr std::size_t kMostTaskLooks = 2'048;

}  // namespace

/// A task that is not first of its lane, and those of lanes that were there before, are no reason
/// to look: no open worker could take the first one.
void BatchDispatch::DispatchLane(bool planning, const std::vector<WorkerId>& freed) {
  ReadyQueue& queue = planning ? planning_ : ready_;
  std::vector<AccountId> fresh = queue.TakeFresh();
  if (queue.empty()) return;
  std::vector<WorkerId> candidates;
  for (const WorkerId id : freed) {
    if (IsOpen(worker_table_.at(id), planning)) candidates.push_back(id);
  }
  // Rounds spread few tasks over the workers, and fill them evenly with many.
  while (!look_at_all_ && !candidates.empty() && !queue.empty()) {
    std::vector<WorkerId> again;
    for (const WorkerId id : candidates) {
      if (GrantNext(worker_table_.at(id), planning)) again.push_back(id);
    }
    candidates.swap(again);
  }
  const bool few = !look_at_all_ && fresh.size() <= kMostLookedAt;
  if (look_at_all_ || !fresh.empty()) LookAtOpen(planning, few ? &fresh : nullptr);
}

/// A worker that was given a task is reached again behind those with as many. Where an idle node
/// has no room for any of the tasks, idle workers of nodes that are no larger are passed over.
void BatchDispatch::LookAtOpen(bool planning, std::vector<AccountId>* only) {
  const ReadyQueue& queue = planning ? planning_ : ready_;
  const OpenWorkers& open =
      planning ? worker_table_.open_for_planning() : worker_table_.open_for_tasks();
  OpenWorkers::value_type& looked_to = looked_to_[planning ? 1 : 0];
  OpenWorkers::value_type at{0, 0};
  if (only == nullptr) at = std::exchange(looked_to, {});
  Resources largest[2] = {{0, 0, 0}, {0, 0, 0}};  // a worker and its node that had no room
  std::size_t looks = kMostTaskLooks;
  for (auto next = open.lower_bound(at); next != open.end(); next = open.lower_bound(at)) {
    if (only != nullptr) std::erase_if(*only, [&](AccountId one) { return !queue.Has(one); });
    if (queue.empty() || (only != nullptr && only->empty())) return;
    const auto [load, id] = *next;
    at = {load, id + 1};
    Worker& worker = worker_table_.at(id);
    const Node& node = worker_table_.NodeOf(worker);
    const bool idle = load == 0 && worker.holders.entries().empty();
    const bool hopeless =
        idle && Fits(worker.capacity, largest[0]) && Fits(node.capacity, largest[1]);
    if (!hopeless && GrantNext(worker, planning, only)) continue;
    const bool whole = node.assigned == Resources{0, 0, 0} && node.planning_bytes == 0 &&
                       !worker_table_.AnyReserved();
    if (!hopeless && idle && whole) {
      largest[0] = worker.capacity;
      largest[1] = node.capacity;
    }
    if (--looks != 0) continue;
    if (only == nullptr) looked_to = at;
    return;
  }
}

/// Leases the best task of the lane that this worker has room for; false when there is none.
bool BatchDispatch::GrantNext(Worker& worker, bool planning, const std::vector<AccountId>* only) {
  ReadyQueue& queue = planning ? planning_ : ready_;
  std::vector<AccountId> not_lent;
  const auto fits = [&](AccountId account, const Resources& need) {
    return MayHold(worker, account, need, planning) &&
           std::find(not_lent.begin(), not_lent.end(), account) == not_lent.end();
  };
  while (IsOpen(worker, planning)) {
    ReadyQueue::Lane* const lane =
        only == nullptr ? queue.Best(fits) : queue.BestAmong(*only, fits);
    if (lane == nullptr) return false;
    const ReadyQueue::JobTasks& head = ReadyQueue::Head(*lane);
    const std::size_t at = ChooseTask(head, worker);
    const ReadyTask entry = head.tasks[at];
    if (!Valid(entry)) {
      queue.Pop(*lane, at);
      continue;
    }
    const Task& task = *table_.Find(entry.task);
    const TaskPace::Estimate estimate = pace_.Of(task.spec.op, task.spec.weight);
    const LaneLoad& load = worker.LaneOf(planning);
    if (!QueueHasRoom(load.tasks, load.queued_us, estimate.us)) return false;
    if (!planning && !MayStart(worker, lane->account, task, estimate.us)) {
      not_lent.push_back(lane->account);
      continue;
    }
    queue.Pop(*lane, at);
    const Job& job = *table_.Find(entry.task.job);
    const std::size_t inputs = InputBytes(job, job.tasks[entry.task.index]);
    if (inputs > protocol::kMaxTaskInputBytes) {
      Fail(entry.task,
           OutcomeOf(InvalidArgument("lease task: its inputs are ", inputs, " bytes, more than ",
                                     protocol::kMaxTaskInputBytes)),
           false);
      continue;
    }
    LeaseTask(worker, entry, estimate);
    return true;
  }
  return false;
}

}  // namespace patchbay::scheduler

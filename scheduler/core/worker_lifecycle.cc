#include "scheduler/core/worker_lifecycle.h"

#include <algorithm>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

/// Lease times for which a lease without progress stays valid while its worker works on others.
constexpr TimeMs kUnstartedLeases = 6;

}  // namespace

void WorkerLifecycle::Dead(Worker& worker, WorkerEnd end, SuspectLane suspects) {
  Remember(worker.dead_incarnations, worker.incarnation);
  worker.state = WorkerState::kGone;
  worker.peer = 0;
  worker.former_shards.clear();
  worker_table_.Unreserve(worker);
  Blame(worker, end, suspects);
  shards_.ForgetMaker(worker.id);
  barrier_.Emit(WorkerGoneRecord{worker.node, worker.index});
  recovery_.AccountFor({worker.node, worker.index});
  worker_table_.Reassign(worker);
  FinishDrains(worker);
}

/// Takes the leases back from a dead or condemned worker, and judges the work that it ran: nothing
/// if the end was unrelated; a death of the lease if there was only one; otherwise all leases, or
/// all of the lane at fault, become suspects.
void WorkerLifecycle::Blame(Worker& worker, WorkerEnd end, SuspectLane suspects) {
  std::vector<LeaseNumber> held(worker.tasks.begin(), worker.tasks.end());
  held.insert(held.end(), worker.shards.begin(), worker.shards.end());
  const bool alone = held.size() == 1;
  // A lane without leases cannot end a worker: such a report is ignored.
  const bool planned = worker.planning.tasks != 0;
  if (suspects == SuspectLane::kPlanning && !planned) suspects = SuspectLane::kAny;
  for (const LeaseNumber& number : held) {
    Lease& lease = book_.At(number);
    const bool of_lane =
        suspects == SuspectLane::kAny || lease.planning == (suspects == SuspectLane::kPlanning);
    const bool counts = end != WorkerEnd::kUnrelated && of_lane;
    if (lease.is_shard) {
      if (Shard* shard = shards_.FindShard(lease); shard != nullptr && counts) {
        if (shard->suspect && !alone) shard->needs_empty_worker = true;
        shard->suspect = true;
        if (alone) shard->solo_deaths.Add(end);
      }
      shards_.Fence(lease, lease.worker_pid);
      continue;
    }
    const TaskId task = lease.task;
    batch_.DropLease(number);
    if (counts) batch_.Blame(task, alone, end);
    batch_.Enqueue(task);
  }
}

void WorkerLifecycle::Tick() {
  for (WorkerId id = 0; id < worker_table_.workers().size(); ++id) {
    if (!worker_table_.TakeDue(id)) continue;
    Worker& worker = worker_table_.at(id);
    if (worker.state == WorkerState::kGone) continue;
    if (worker.state == WorkerState::kCondemned) {
      if (event_.now - worker.kill_sent >= options_.resend_ms) SendKill(worker);
    } else {
      ExpireLeases(worker);
      TakeFromLost(worker);
    }
    std::erase_if(worker.barred, [&](const auto& bar) { return bar.second <= event_.now; });
    worker_table_.Reindex(worker);
    worker_table_.LookBy(id, NextLook(worker));
  }
  worker_table_.TickReserved();
  for (auto& [name, node] : worker_table_.nodes()) {
    if (!node.registered || event_.now - node.last_seen < options_.forget_node_ms) continue;
    node.registered = false;
    node.agent = 0;
    for (const auto& [index, id] : node.workers) {
      if (worker_table_.at(id).state != WorkerState::kGone)
        Dead(worker_table_.at(id), WorkerEnd::kUnrelated);
    }
  }
}

/// One that may be given no leases is looked at by every tick.
TimeMs WorkerLifecycle::NextLook(const Worker& worker) const {
  TimeMs heard = worker_table_.NodeOf(worker).last_seen;
  if (worker.sends_heartbeats) heard = std::min(heard, worker.last_seen);
  TimeMs next = heard + options_.suspect_ms;
  if (!worker.tasks.empty() || !worker.shards.empty()) next = std::min(next, worker.next_expiry);
  for (const auto& [rank, until] : worker.barred) next = std::min(next, until);
  return next;
}

void WorkerLifecycle::ExpireLeases(Worker& worker) {
  if ((worker.tasks.empty() && worker.shards.empty()) || event_.now < worker.next_expiry) return;
  TimeMs planning = INT64_MAX, others = INT64_MAX;
  for (const LeaseNumber& number : worker.tasks) {
    TimeMs& first = book_.At(number).planning ? planning : others;
    first = std::min(first, ExpiryOf(worker, number));
  }
  for (const LeaseNumber& number : worker.shards) {
    others = std::min(others, ExpiryOf(worker, number));
  }
  worker.next_expiry = std::min(planning, others);
  if (worker.next_expiry > event_.now) return;
  const bool both = std::max(planning, others) <= event_.now;
  Condemn(worker, both                     ? SuspectLane::kAny
                  : planning <= event_.now ? SuspectLane::kPlanning
                                           : SuspectLane::kAllButPlanning);
}

TimeMs WorkerLifecycle::ExpiryOf(const Worker& worker, const LeaseNumber& number) const {
  const Lease& lease = book_.At(number);
  if (lease.progress != 0) return lease.deadline;
  const TimeMs most = lease.granted_at + kUnstartedLeases * options_.lease_ms;
  return std::max(lease.deadline, std::min(worker.progress_at + options_.lease_ms, most));
}

void WorkerLifecycle::TakeUnnamed(Worker& worker, const std::set<LeaseNumber>& named) {
  const auto shards = worker.shards;
  const auto tasks = worker.tasks;
  for (const LeaseNumber& number : tasks) {
    if (named.count(number) == 0) batch_.TakeBack(number);
  }
  for (const LeaseNumber& number : shards) {
    if (named.count(number) == 0) shards_.TakeBack(book_.At(number));
  }
}

/// The process has ended, is frozen or cut off, and it is unknown which: its leases go to others. A
/// trainer on another host refuses anything that it may still send; the memory of one on its own
/// host may be written until the process is dead.
void WorkerLifecycle::TakeFromLost(Worker& worker) {
  const bool holds = !worker.tasks.empty() || !worker.shards.empty();
  const bool lost = worker.peer == 0 && event_.now - worker.last_seen >= options_.lost_ms;
  if (!holds || !lost || worker.state == WorkerState::kCondemned) return;
  const auto shards = worker.shards;
  const auto tasks = worker.tasks;
  for (const LeaseNumber& number : shards) {
    Lease& lease = book_.At(number);
    if (!shards_.TrainerTalks(lease)) continue;
    if (lease.worker_pid != 0) return Condemn(worker);
    shards_.Fence(lease, 0);
  }
  for (const LeaseNumber& number : tasks) batch_.TakeBack(number);
}

/// A lease expired. A worker that still sends messages is stuck in its work; a silent one is frozen
/// or cut off, which is no evidence against its work.
void WorkerLifecycle::Condemn(Worker& worker, SuspectLane suspects) {
  ++leases_expired_;
  worker.state = WorkerState::kCondemned;
  const bool talks = worker.peer != 0 && event_.now - worker.last_seen < options_.suspect_ms;
  Blame(worker, talks ? WorkerEnd::kCrashed : WorkerEnd::kUnrelated, suspects);
  worker_table_.Unreserve(worker);
  worker_table_.Reassign(worker);
  SendKill(worker);
}

void WorkerLifecycle::SendKill(Worker& worker) {
  worker.kill_sent = event_.now;
  const Node& node = worker_table_.NodeOf(worker);
  if (node.registered)
    barrier_.Send(node.agent, 0, protocol::KillWorker{worker.index, worker.incarnation});
}

void WorkerLifecycle::FinishDrains(Worker& worker) {
  if (worker.drain_peer != 0 && worker.tasks.empty() && worker.shards.empty()) {
    barrier_.SendDurable(worker.drain_peer, worker.drain_request, protocol::Drained{});
    worker.drain_peer = 0;
  }
  FinishNodeDrain(worker_table_.NodeOf(worker));
}

void WorkerLifecycle::FinishNodeDrain(Node& node) {
  if (!node.draining || node.drain_request == 0) return;
  for (const auto& [index, id] : node.workers) {
    if (!worker_table_.at(id).tasks.empty() || !worker_table_.at(id).shards.empty()) return;
  }
  barrier_.SendDurable(node.agent, node.drain_request, protocol::Drained{});
  node.drain_request = 0;
}

}  // namespace patchbay::scheduler

// Compares the parts' tables with each other; the simulator calls this after every event. A part
// whose table is independent of others checks itself in its own file.
#include "scheduler/core/parts.h"
#include "scheduler/policy/limits.h"
#include "scheduler/state/stream_check.h"

namespace patchbay::scheduler {
namespace {

/// A lane occupies the largest request of its leases.
struct LaneNeeds {
  Resources work{0, 0, 0}, planning{0, 0, 0};
  std::uint32_t works = 0, plans = 0;
};

LaneNeeds NeedsOf(const Worker& worker, const JobTable& table, const LeaseBook& book) {
  LaneNeeds needs;
  for (const LeaseNumber& number : worker.tasks) {
    const Lease& lease = book.At(number);
    const Job& job = *table.Find(lease.task.job);
    const Resources& need = job.tasks[lease.task.index].spec.resources;
    Resources& most = lease.planning ? needs.planning : needs.work;
    most = Largest(most, need);
    ++(lease.planning ? needs.plans : needs.works);
  }
  if (!worker.shards.empty()) needs.work = Largest(needs.work, ShardNeed(worker));
  return needs;
}

/// Memory of the worker that planning of that need would take.
std::uint64_t BytesToPlan(const Worker& worker, const Resources& need) {
  const std::uint64_t reserve =
      std::min(worker.capacity.memory_bytes / kPlanningShare, kPlanningBytes);
  return std::max(need.memory_bytes, reserve);
}

/// Whether the work on the worker and its node leaves memory for planning of that need.
bool LeavesRoomToPlan(const Worker& worker, const Node& node, const Resources& need) {
  const std::uint64_t bytes = BytesToPlan(worker, need);
  return bytes + worker.assigned.memory_bytes <= worker.capacity.memory_bytes &&
         bytes + node.assigned.memory_bytes + node.planning_bytes <= node.capacity.memory_bytes;
}

}  // namespace

Status WorkerTable::CheckNode(const Node& node) const {
  Resources total{0, 0, 0};
  std::uint64_t planning_bytes = 0;
  for (const auto& [index, id] : node.workers) {
    if (workers_[id].node != node.name || workers_[id].index != index || !node.ids.Has(id)) {
      return Broken(StrCat("node ", node.name, " lists a worker of another place"));
    }
    total.cpu_millis += workers_[id].assigned.cpu_millis;
    total.gpus += workers_[id].assigned.gpus;
    total.memory_bytes += workers_[id].assigned.memory_bytes;
    planning_bytes += workers_[id].planning_bytes;
  }
  if (node.ids.size() != node.workers.size()) return Broken("a node has a worker twice");
  if (!(total == node.assigned) || planning_bytes != node.planning_bytes) {
    return Broken(StrCat("node ", node.name, " sums up wrongly"));
  }
  total.memory_bytes += planning_bytes;
  if (node.registered && !Fits(total, node.capacity)) {
    return Broken(StrCat("node ", node.name, " is given more than it has"));
  }
  return absl::OkStatus();
}

Status WorkerTable::CheckWorker(const Worker& worker) const {
  const bool idle = worker.tasks.empty() && worker.shards.empty();
  Resources all = worker.assigned;
  all.memory_bytes += worker.planning_bytes;
  if (!Fits(all, worker.capacity)) return Broken("a worker is given too much");
  if (idle && worker.work.queued_us + worker.planning.queued_us != 0) {
    return Broken("an idle worker has work queued");
  }
  const bool makes_suspect = worker.shards.count(worker.suspect) != 0;
  const std::size_t beside = makes_suspect ? worker.work.tasks : worker.tasks.size();
  if (worker.RunsSuspect() && beside + worker.shards.size() != 1) {
    return Broken("a suspect does not run alone");
  }
  if (worker.work.tasks > kMaxQueueDepth || worker.planning.tasks > kMaxQueueDepth ||
      worker.work.tasks + worker.planning.tasks != worker.tasks.size() ||
      worker.shards.size() > kMaxShardDepth) {
    return Broken("a worker's queue is too long");
  }
  if (worker.reserved != (worker.id == reserved_)) return Broken("another worker is reserved");
  const OpenKeys& keys = open_keys_[worker.id];
  const auto known = [&](const OpenWorkers& open, std::uint32_t key, std::uint32_t load) {
    return key == kNotOpen || (key == load && open.count({key, worker.id}) != 0);
  };
  const bool by_tasks = known(task_open_, keys.task, worker.work.tasks);
  const bool by_plans = known(planning_open_, keys.planning, worker.planning.tasks);
  const auto shards = static_cast<std::uint32_t>(worker.shards.size());
  const bool by_shards = known(shard_open_[keys.kind], keys.shard, shards);
  if (keys.kept != (kept_.count(worker.id) != 0)) return Broken("another worker is kept");
  const bool may = CanLease(worker) && !worker.RunsSuspect() && !worker.reserved;
  if (may != keys.may && look_at_[worker.id] > event_.now) {
    return Broken(StrCat("worker ", worker.id, " may be given leases as before, for ever"));
  }
  if (!by_tasks || !by_plans || !by_shards)
    return Broken(StrCat("worker ", worker.id, " is open as another"));
  return absl::OkStatus();
}

Status WorkerTable::Check() const {
  std::size_t for_tasks = 0, for_planning = 0, for_shards = 0, listed = 0;
  for (WorkerId id = 0; id < workers_.size(); ++id) {
    if (workers_[id].id != id) return Broken("a worker is filed under another's id");
    PB_RETURN_IF_ERROR(CheckWorker(workers_[id]));
    listed += workers_[id].node.empty() ? 0 : 1;
    for_tasks += IsOpenForTasks(id) ? 1 : 0;
    for_planning += IsOpenForPlanning(id) ? 1 : 0;
    for_shards += IsOpenForShards(id) ? 1 : 0;
  }
  if (for_tasks != task_open_.size() || for_planning != planning_open_.size() ||
      for_shards != shard_open_[0].size() + shard_open_[1].size()) {
    return Broken("a worker is open under two loads");
  }
  if (listed != places()) return Broken("a worker of a forgotten node is in use, or lost");
  std::size_t on_hosts = 0;
  for (const auto& [host, names] : hosts_) {
    on_hosts += names.size();
    if (names.empty()) return Broken("a host is known on which there is no node");
  }
  for (const auto& [name, node] : nodes_) {
    PB_RETURN_IF_ERROR(CheckNode(node));
    const auto host = hosts_.find(node.host_identity);
    on_hosts -= host != hosts_.end() && host->second.count(name) != 0 ? 1 : 0;
  }
  return on_hosts == 0 ? absl::OkStatus() : Broken("a host lists a node that is not on it");
}

Status Peers::Check() const {
  for (const Worker& worker : worker_table_.workers()) {
    if (worker.peer == 0) continue;
    const Peer* peer = Find(worker.peer);
    if (peer == nullptr || peer->worker != worker.id) {
      return Broken(StrCat("worker ", worker.id, " names a connection that is not its own"));
    }
  }
  for (const auto& [name, node] : worker_table_.nodes()) {
    if (node.agent == 0) continue;
    const Peer* peer = Find(node.agent);
    if (peer == nullptr || peer->agent_of != name) {
      return Broken(StrCat("node ", name, " names a connection that is not its agent's"));
    }
  }
  return absl::OkStatus();
}

Status BatchDispatch::Check() const {
  PB_RETURN_IF_ERROR(ready_.Check());
  PB_RETURN_IF_ERROR(planning_.Check());
  PB_RETURN_IF_ERROR(CheckPlanning());
  std::map<JobId, std::uint64_t> running;
  for (const auto& [number, lease] : book_.leases()) {
    if (lease->is_shard) continue;
    ++running[lease->task.job];
    const Job& job = *table_.Find(lease->task.job);
    if (lease->planning != job.Plans(job.tasks[lease->task.index])) {
      return Broken(StrCat("task ", lease->task.ToString(), " is in another's lane"));
    }
    if (barrier_.Holds(table_.Find(lease->task.job)->tasks[lease->task.index])) {
      return Broken(StrCat("task ", lease->task.ToString(), " is leased before it may run"));
    }
  }
  for (const auto& [id, job] : table_.jobs()) {
    const auto leased = running.find(id);
    if (job.tasks_running != (leased == running.end() ? 0 : leased->second)) {
      return Broken(StrCat("job ", id, " counts ", job.tasks_running, " running tasks"));
    }
    std::uint64_t ready = 0;
    for (const Task& task : job.tasks) {
      const bool counts = task.state == TaskState::kReady && !job.Plans(task);
      ready += counts ? task.spec.resources.cpu_millis : 0;
      if (task.state == TaskState::kReady && (job.on_hold || job.waits_for_place)) {
        return Broken(StrCat("job ", id, " is on hold or has no place, and a task of it is ready"));
      }
    }
    if (ready != job.ready_cpu_millis) return Broken(StrCat("job ", id, " counts its ready cores"));
  }
  for (const Worker& worker : worker_table_.workers()) {
    const LaneNeeds needs = NeedsOf(worker, table_, book_);
    if (needs.works != worker.work.tasks || needs.plans != worker.planning.tasks) {
      return Broken(StrCat("worker ", worker.id, " counts the tasks of its lanes wrongly"));
    }
    const std::uint64_t bytes = needs.plans == 0 ? 0 : BytesToPlan(worker, needs.planning);
    const bool unheard = WorkerTable::IsUnheard(worker) && Fits(needs.work, worker.assigned) &&
                         bytes <= worker.planning_bytes;
    if (!unheard && !(needs.work == worker.assigned && bytes == worker.planning_bytes)) {
      return Broken(StrCat("worker ", worker.id, " occupies something else than its leases need"));
    }
  }
  return absl::OkStatus();
}

/// No task waits to plan among others, or while a worker that has room for it plans nothing.
Status BatchDispatch::CheckPlanning() const {
  const ReadyTask* astray = ready_.FindEntry([&](const Resources&, const ReadyTask& entry) {
    return Valid(entry) && table_.Find(entry.task.job)->Plans(*table_.Find(entry.task));
  });
  if (astray != nullptr) {
    return Broken(StrCat("task ", astray->task.ToString(), " waits to plan behind batch tasks"));
  }
  if (!barrier_.IsOpen()) return absl::OkStatus();
  for (const Worker& worker : worker_table_.workers()) {
    if (worker.planning.tasks != 0 || !worker_table_.MayTakeMore(worker.id)) continue;
    if (!worker_table_.CanLease(worker)) continue;
    const Node& node = worker_table_.nodes().at(worker.node);
    const ReadyTask* waits = planning_.FindEntry([&](const Resources& need,
                                                     const ReadyTask& entry) {
      return Fits(need, worker.capacity) && LeavesRoomToPlan(worker, node, need) && Valid(entry);
    });
    if (waits == nullptr) continue;
    return Broken(StrCat("task ", waits->task.ToString(), " waits to plan while worker ", worker.id,
                         " plans nothing"));
  }
  return absl::OkStatus();
}

Status WorkerLifecycle::Check() const {
  for (const Worker& worker : worker_table_.workers()) {
    const bool over = worker.state == WorkerState::kGone || worker.state == WorkerState::kCondemned;
    if (over && !(worker.tasks.empty() && worker.shards.empty())) {
      return Broken("a dead worker holds leases");
    }
  }
  return absl::OkStatus();
}

Status ShardLeases::Check() const {
  std::size_t held = 0, making = 0;
  for (const Worker& worker : worker_table_.workers()) held += worker.shards.size();
  for (const auto& [number, lease] : book_.leases()) {
    if (!lease->is_shard || lease->phase != ShardPhase::kMaking) continue;
    ++making;
    if (worker_table_.at(lease->worker).shards.count(number) == 0) {
      return Broken(StrCat("lease ", number.ToString(), " is being made by nobody"));
    }
  }
  return held == making ? absl::OkStatus()
                        : Broken("a worker holds a shard that was taken from it");
}

Status TeamHandler::Check() const {
  if (!fair_.IsSound()) return Broken("the order of service is not that of its members");
  std::map<std::pair<WorkerId, AccountId>, Holders::Entry> held;
  for (const auto& [number, lease] : book_.leases()) {
    if (lease->planning || (lease->is_shard && lease->phase != ShardPhase::kMaking)) continue;
    const Job& job = *barrier_.table().Find(lease->is_shard ? lease->stream : lease->task.job);
    const std::string& team = fair_.TeamOf(lease->account);
    if (number > before_policy_ && team != (job.team.empty() ? model::kDefaultTeam : job.team)) {
      return Broken(StrCat("lease ", number.ToString(), " is charged to another than its job's"));
    }
    Holders::Entry& entry = held[{lease->worker, lease->account}];
    ++(lease->is_shard ? entry.shards : entry.tasks);
    const Amounts need = NeedOf(*lease);
    for (std::size_t of = 0; of < kResources; ++of) {
      entry.held[of] = std::max(entry.held[of], need[of]);
    }
  }
  std::size_t entries = 0;
  Amounts used = {};
  for (const Worker& worker : worker_table_.workers()) {
    for (std::size_t of = 0; of < kResources; ++of) used[of] += worker.holders.Used()[of];
    for (const Holders::Entry& entry : worker.holders.entries()) {
      ++entries;
      const Holders::Entry& found = held[{worker.id, entry.account}];
      if (found.tasks != entry.tasks || found.shards != entry.shards ||
          Beyond(found.held, entry.held) != Amounts{}) {
        return Broken(StrCat("worker ", worker.id, " counts its holders wrongly"));
      }
    }
  }
  if (used != fair_.used()) return Broken("workers are used for other than is counted");
  return entries == held.size() ? CheckCaps() : Broken("an account holds what no worker has");
}

Amounts TeamHandler::NeedOf(const Lease& lease) const {
  if (lease.is_shard) return AmountsOf(ShardNeed(worker_table_.at(lease.worker)));
  return AmountsOf(barrier_.table().Find(lease.task)->spec.resources);
}

/// Leases since the policy holds are within its caps, but for those that went to somebody who had
/// nothing, and suspects.
Status TeamHandler::CheckCaps() const {
  using Names = std::pair<std::string, std::string>;
  std::map<Names, std::map<WorkerId, Amounts>> held;
  for (const auto& [number, lease] : book_.leases()) {
    const bool counts = number > before_policy_ &&
                        number.incarnation == book_.LastNumber().incarnation && !lease->planning &&
                        (!lease->is_shard || lease->phase == ShardPhase::kMaking) &&
                        worker_table_.at(lease->worker).suspect != number;
    if (!counts) continue;
    const std::string& team = fair_.TeamOf(lease->account);
    for (const Names& names : {Names(team, ""), Names(team, fair_.UserOf(lease->account))}) {
      Amounts& most = held[names][lease->worker];
      const Amounts need = NeedOf(*lease);
      for (std::size_t of = 0; of < kResources; ++of) most[of] = std::max(most[of], need[of]);
    }
  }
  const model::TeamPolicy& policy = barrier_.table().teams().policy;
  for (const auto& [names, workers] : held) {
    const model::TeamRules* rules = policy.Find(names.first);
    if (rules == nullptr) continue;
    const auto user = rules->users.find(names.second);
    const bool of_user = !names.second.empty() && user != rules->users.end();
    const Amounts most = CapsOf(of_user ? user->second.most : rules->most);
    for (std::size_t of = 0; of < kResources; ++of) {
      std::uint64_t sum = 0, holding = 0;
      for (const auto& [worker, amounts] : workers) {
        sum += amounts[of];
        holding += amounts[of] == 0 ? 0 : 1;
      }
      if (sum <= most[of] || holding == 1) continue;
      return Broken(StrCat("team ", names.first, " ", names.second, " holds ", sum, " ",
                           ResourceNoun(of), " of ", most[of]));
    }
  }
  return absl::OkStatus();
}

Status Core::Parts::Check() const {
  const JobTable& table = barrier.table();
  PB_RETURN_IF_ERROR(team_handler.Check());
  PB_RETURN_IF_ERROR(barrier.Check());
  PB_RETURN_IF_ERROR(table.CheckBytes());
  PB_RETURN_IF_ERROR(logs.Check([&](JobId job) { return table.Find(job) != nullptr; }));
  PB_RETURN_IF_ERROR(worker_table.Check());
  PB_RETURN_IF_ERROR(peers.Check());
  PB_RETURN_IF_ERROR(book.Check());
  PB_RETURN_IF_ERROR(recovery.Check(table.known_workers()));
  PB_RETURN_IF_ERROR(batch.Check());
  PB_RETURN_IF_ERROR(lifecycle.Check());
  PB_RETURN_IF_ERROR(shards.Check());
  PB_RETURN_IF_ERROR(units.Check(table));
  return CheckStreams(streams, book.table(), table);
}

}  // namespace patchbay::scheduler

// The tables held against each other: what the simulator asks after every event.
#include "scheduler/core/machine.h"

namespace patchbay::scheduler {
namespace {

Status Broken(const std::string& what) { return absl::InternalError(StrCat("check core: ", what)); }

Status CheckSlots(const Stream& stream, const Trainer& trainer,
                  const std::unordered_map<LeaseNumber, Lease, LeaseHash>& leases) {
  std::map<std::uint32_t, std::uint32_t> by_slot;
  std::set<std::pair<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t>> ranges;
  for (const LeaseNumber& number : trainer.leases) {
    const auto it = leases.find(number);
    if (it == leases.end()) return Broken("a trainer's lease is not in the table");
    const Grant& grant = it->second.grant;
    ++by_slot[grant.slot];
    const auto slot = trainer.slots.find(grant.slot);
    if (slot == trainer.slots.end() || slot->second.generation != grant.slot_generation) {
      return Broken(StrCat("slot ", grant.slot, " moved on while lease ", number.ToString(),
                           " may write into it"));
    }
    if (!ranges.insert({{grant.slot, grant.slot_generation}, grant.offset_bytes}).second) {
      return Broken(
          StrCat("two live leases may write slot ", grant.slot, " offset ", grant.offset_bytes));
    }
  }
  for (const auto& [number, slot] : trainer.slots) {
    if (by_slot[number] != slot.leases) {
      return Broken(
          StrCat("slot ", number, " counts ", slot.leases, " leases, not ", by_slot[number]));
    }
    const bool is_free = trainer.free.count(number) != 0;
    if (is_free != (slot.state == protocol::SlotState::kFree && slot.announced == 0)) {
      return Broken(StrCat("slot ", number, " of stream ", stream.job, " is free and is not"));
    }
    if (is_free && slot.leases != 0) return Broken("a free slot has leases");
  }
  std::set<std::uint32_t> bound;
  for (const auto& [at, filling] : trainer.filling) {
    if (!bound.insert(filling.slot).second) return Broken("two batches are bound to one slot");
    std::uint32_t counted = 0;
    for (std::uint32_t i = 0; i < filling.shards.size(); ++i) {
      const Shard& shard = filling.shards[i];
      counted += shard.state == ShardState::kCounted ? 1 : 0;
      const bool pending = trainer.pending.count({at, i}) != 0;
      if (pending != (shard.state == ShardState::kPending)) return Broken("pending set differs");
      if (shard.state == ShardState::kLeased && leases.count(shard.lease) == 0) {
        return Broken("a shard's lease is not in the table");
      }
    }
    if (counted != filling.counted || counted == filling.shards.size()) {
      return Broken("a filling batch's count differs");
    }
  }
  return absl::OkStatus();
}

/// A worker occupies the largest of what its leases need.
Resources NeedOf(const Worker& worker, const JobTable& table,
                 const std::unordered_map<LeaseNumber, Lease, LeaseHash>& leases) {
  Resources most{0, 0, 0};
  for (const LeaseNumber& number : worker.tasks) {
    const TaskId& id = leases.at(number).task;
    most = Largest(most, table.Find(id.job)->tasks[id.index].spec.resources);
  }
  return worker.shards.empty() ? most : Largest(most, ShardNeed(worker));
}

Status CheckNode(const Node& node, const std::deque<Worker>& workers) {
  Resources total{0, 0, 0};
  for (const auto& [index, id] : node.workers) {
    total.cpu_millis += workers[id].assigned.cpu_millis;
    total.gpus += workers[id].assigned.gpus;
    total.memory_bytes += workers[id].assigned.memory_bytes;
  }
  if (!(total == node.assigned)) return Broken(StrCat("node ", node.name, " sums up wrongly"));
  if (node.registered && !Fits(total, node.capacity)) {
    return Broken(StrCat("node ", node.name, " is given more than it has"));
  }
  return absl::OkStatus();
}

}  // namespace

Status Core::Machine::Check() const {
  std::size_t held = 0, unresolved = 0;
  for (const Worker& worker : workers) {
    held += worker.tasks.size();
    if (!Fits(worker.assigned, worker.capacity)) return Broken("a worker is given too much");
    for (const LeaseNumber& number : worker.tasks) {
      const auto it = leases.find(number);
      if (it == leases.end() || it->second.is_shard || it->second.worker != worker.id) {
        return Broken(StrCat("worker ", worker.id, " holds lease ", number.ToString(),
                             ", which is ", it == leases.end() ? "unknown" : "another's"));
      }
      const Task& task = table.Find(it->second.task.job)->tasks[it->second.task.index];
      if (task.state != TaskState::kLeased || task.lease != number) {
        return Broken(StrCat("task ", it->second.task.ToString(), " does not know its lease"));
      }
    }
    if (!(NeedOf(worker, table, leases) == worker.assigned)) {
      return Broken(StrCat("worker ", worker.id, " occupies something else than its leases need"));
    }
    const bool idle = worker.tasks.empty() && worker.shards.empty();
    const bool over = worker.state == WorkerState::kGone || worker.state == WorkerState::kCondemned;
    if (over && !idle) return Broken("a dead worker holds leases");
    if (idle && worker.queued_us != 0) return Broken("an idle worker has work queued");
    if (worker.solo && worker.tasks.size() + worker.shards.size() > 1) {
      return Broken("a suspect does not run alone");
    }
    if (worker.tasks.size() > kMaxQueueDepth || worker.shards.size() > kMaxShardDepth) {
      return Broken("a worker's queue is too long");
    }
  }
  for (const auto& [id, stream] : streams) {
    for (const auto& [rank, trainer] : stream.trainers) {
      unresolved += trainer.leases.size();
      PB_RETURN_IF_ERROR(CheckSlots(stream, trainer, leases));
    }
  }
  if (held + unresolved != leases.size()) return Broken("leases nobody holds");
  for (const auto& [name, node] : nodes) PB_RETURN_IF_ERROR(CheckNode(node, workers));
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler

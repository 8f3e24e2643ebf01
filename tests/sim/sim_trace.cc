// Messages as a trace shows them.
#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {
namespace {

struct Text {
  std::string operator()(const LeasesGranted& granted) const {
    std::string text = "granted";
    for (const TaskLease& one : granted.tasks) {
      text += StrCat(" ", one.lease.ToString(), "=task ", one.task.ToString());
    }
    for (const ShardLease& one : granted.shards) {
      text += StrCat(" ", one.lease.ToString(), "=shard ", one.stream, ":", one.shard.ToString(),
                     " slot ", one.grant.slot, " g", one.grant.slot_generation);
    }
    return text;
  }
  std::string operator()(const protocol::LeasesRevoked& revoked) const {
    std::string text = "revoked";
    for (const LeaseNumber& lease : revoked.leases) text += StrCat(" ", lease.ToString());
    return text;
  }
  std::string operator()(const protocol::TasksFinished& finished) const {
    std::string text = "finished";
    for (const auto& item : finished.items) {
      text += StrCat(" ", item.lease.ToString(), "=", item.task.ToString(), ":", item.outcome.code);
    }
    return text;
  }
  std::string operator()(const protocol::ShardsReturned& returned) const {
    std::string text = "returned";
    for (const auto& item : returned.items) {
      text += StrCat(" ", item.lease.ToString(), ":", item.outcome.code);
    }
    return text;
  }
  std::string operator()(const protocol::FenceShard& fence) const {
    return StrCat("fence ", fence.lease.ToString(), " ", fence.shard.ToString(), " pid ",
                  fence.worker_pid, " slot ", fence.grant.slot, " g", fence.grant.slot_generation);
  }
  std::string operator()(const protocol::ShardFenced& fenced) const {
    return StrCat("fenced ", fenced.lease.ToString(), " ", fenced.shard.ToString(), " slot ",
                  fenced.row.slot, " g", fenced.row.generation,
                  fenced.already_counted ? " counted" : "");
  }
  std::string operator()(const protocol::ShardsCounted& counted) const {
    std::string text = "counted";
    for (const auto& item : counted.items) {
      text += StrCat(" ", item.lease.ToString(), "=", item.shard.ToString());
    }
    return text;
  }
  std::string operator()(const protocol::KillWorker& kill) const {
    return StrCat("kill ", kill.index, " incarnation ", kill.worker_incarnation);
  }
  std::string operator()(const protocol::WorkerExited& exited) const {
    return StrCat("exited ", exited.index, " incarnation ", exited.worker_incarnation);
  }
  std::string operator()(const protocol::RequestFailed& failed) const {
    return StrCat("refused: ", failed.outcome.message);
  }
  std::string operator()(const protocol::RegisterWorker& hello) const {
    std::string text = StrCat("register ", hello.index, " incarnation ", hello.worker_incarnation);
    for (const auto& held : hello.held) text += StrCat(" ", held.lease.ToString());
    return text;
  }
  std::string operator()(const protocol::AttachTrainer& attach) const {
    return StrCat("attach rank ", attach.rank, " at ", attach.first_epoch, "/", attach.first_batch);
  }
  std::string operator()(const protocol::StreamFailed& failed) const {
    return StrCat("stream failed: ", failed.outcome.message);
  }
  template <typename Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

}  // namespace

std::string TextOf(const Body& body) { return StrCat(body.index(), " ", std::visit(Text{}, body)); }

}  // namespace patchbay::sim

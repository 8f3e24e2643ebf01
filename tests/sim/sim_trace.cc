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
    return StrCat("refused: ", TextOf(failed.outcome));
  }
  std::string operator()(const protocol::RegisterWorker& hello) const {
    std::string text = StrCat("register ", hello.index, " incarnation ", hello.worker_incarnation);
    for (const auto& held : hello.held) text += StrCat(" ", held.lease.ToString());
    return text;
  }
  std::string operator()(const protocol::AttachTrainer& attach) const {
    return StrCat("attach rank ", attach.rank, " at ", attach.first_epoch, "/", attach.first_batch,
                  UnitsText(attach.units));
  }
  std::string operator()(const protocol::UnitsAssigned& told) const {
    return StrCat("units of rank ", told.rank, UnitsText(told.units),
                  told.all_finished ? " all finished" : "");
  }
  std::string operator()(const protocol::FinishUnit& finish) const {
    return StrCat("finish unit ", finish.unit, " of rank ", finish.rank, " code ",
                  finish.outcome.code);
  }
  static std::string UnitsText(const std::vector<AssignedUnit>& units) {
    std::string text;
    for (const AssignedUnit& one : units) text += StrCat(" u", one.epoch, "/", one.unit);
    return text;
  }
  std::string operator()(const protocol::StreamFailed& failed) const {
    return StrCat("stream failed: ", TextOf(failed.outcome));
  }
  template <typename Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

struct RecordText {
  std::string operator()(const scheduler::StartRecord& one) const {
    return StrCat("start of incarnation ", one.incarnation);
  }
  std::string operator()(const scheduler::SubmitRecord& one) const {
    return StrCat("submission of job ", one.job, " ", one.root.payload);
  }
  std::string operator()(const scheduler::CommitRecord& one) const {
    return StrCat("commit of ", one.task.ToString(), " under ", one.lease.ToString());
  }
  std::string operator()(const scheduler::FailRecord& one) const {
    return StrCat("failure of ", one.task.ToString(), one.quarantined ? ", quarantined" : "");
  }
  std::string operator()(const scheduler::CancelRecord& one) const {
    return StrCat("cancel of job ", one.job);
  }
  std::string operator()(const scheduler::RetryRecord& one) const {
    return StrCat("retry of job ", one.job);
  }
  std::string operator()(const scheduler::EndStreamRecord& one) const {
    return StrCat("end of stream ", one.job, " ", TextOf(one.outcome));
  }
  std::string operator()(const scheduler::DetachRecord& one) const {
    return StrCat("detach of rank ", one.rank, " of stream ", one.job);
  }
  std::string operator()(const scheduler::FinishUnitRecord& one) const {
    return StrCat("end of unit ", one.unit, " of stream ", one.job, " ", TextOf(one.outcome));
  }
  std::string operator()(const scheduler::UsageRecord& one) const {
    return StrCat("usage of ", one.charges.size(), " jobs");
  }
  std::string operator()(const scheduler::ChangeJobRecord& one) const {
    return StrCat("change of job ", one.job, ", priority ", one.priority,
                  one.on_hold ? ", held" : "");
  }
  std::string operator()(const scheduler::ForgetJobRecord& one) const {
    return StrCat("job ", one.job, " forgotten");
  }
  std::string operator()(const scheduler::ChangeNodeRecord& one) const {
    return StrCat(one.by.empty() ? "resume of node " : "drain of node ", one.node);
  }
  std::string operator()(const scheduler::ApplyTeamsRecord& one) const {
    return StrCat("policy ", one.policy, " jobs to ", one.move_to);
  }
  std::string operator()(const scheduler::WorkerSeenRecord& one) const {
    return StrCat("worker ", one.node, "/", one.index, " incarnation ", one.worker_incarnation);
  }
  std::string operator()(const scheduler::WorkerGoneRecord& one) const {
    return StrCat("end of worker ", one.node, "/", one.index);
  }
};

constexpr const char* kNames[] = {
    "heartbeat",        "heartbeat-seen",   "request-failed",    "register-agent",
    "agent-registered", "register-worker",  "worker-registered", "leases-granted",
    "leases-revoked",   "fetch-stream",     "stream-described",  "renew-leases",
    "leases-renewed",   "tasks-finished",   "tasks-committed",   "shards-returned",
    "worker-exited",    "worker-exit-seen", "kill-worker",       "drain",
    "drained",          "attach-trainer",   "trainer-attached",  "announce-slots",
    "shards-counted",   "fence-shard",      "shard-fenced",      "stream-failed",
    "detach-trainer",   "trainer-detached", "submit-job",        "job-submitted",
    "describe-jobs",    "jobs-described",   "fetch-result",      "result-fetched",
    "cancel-job",       "job-cancelled",    "retry-job",         "job-retried"};

}  // namespace

std::string TextOf(const scheduler::RecordBody& body) { return std::visit(RecordText{}, body); }

std::string TextOf(const Body& body) {
  const std::string kind =
      body.index() < std::size(kNames) ? kNames[body.index()] : StrCat("message ", body.index());
  return StrCat(kind, " ", std::visit(Text{}, body));
}

}  // namespace patchbay::sim

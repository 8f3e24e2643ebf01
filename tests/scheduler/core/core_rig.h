// A core with hand-cranked time and a journal that is durable when the test says so.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "tests/scheduler/in_process_scheduler.h"

namespace patchbay::scheduler {

/// Connections of users, none of whom is an operator.
inline constexpr PeerId kAnn = 70, kBob = 71, kStranger = 72;

class CoreRig {
 public:
  explicit CoreRig(bool sync = true, const CoreOptions& options = {})
      : scheduler_(
            options, [this](SendAction&& send) { sent_.push_back(std::move(send)); }, sync) {
    Restart();
  }

  static constexpr PeerId kOps = 1, kAgent = 2, kWorker0 = 10, kTrainer0 = 50;

  void Join(PeerId peer, Role role, const std::string& name, const std::string& team = "") {
    scheduler_.Join(peer, role, name, team);
  }
  void Leave(PeerId peer) { scheduler_.Leave(peer, now_); }
  /// Everything sent because of this message, and because the journal then synced.
  void Tell(PeerId peer, Body body, std::uint64_t request = 7) {
    sent_.clear();
    scheduler_.Tell(peer, std::move(body), request, now_);
  }
  void Sync() { scheduler_.Sync(now_); }
  /// Advances time in ticks of 100 ms; the agent and the peers in `alive` send heartbeats.
  void Pass(TimeMs ms, const std::vector<PeerId>& alive = {kAgent}) {
    std::vector<SendAction> all;
    for (TimeMs end = now_ + ms; now_ < end;) {
      now_ += 100;
      for (const PeerId peer : alive) {
        if (now_ % 500 != 0) continue;
        Tell(peer, protocol::Heartbeat{}, 0);
        all.insert(all.end(), sent_.begin(), sent_.end());
      }
      sent_.clear();
      scheduler_.Tick(now_);
      all.insert(all.end(), sent_.begin(), sent_.end());
    }
    sent_ = std::move(all);
  }

  void AddAgent(std::uint32_t cpus = 4, std::uint64_t incarnation = 1, std::size_t gpus = 0) {
    protocol::RegisterAgent hello;
    hello.node = "node";
    hello.host_identity = "host";
    hello.cpus = cpus;
    hello.memory_bytes = 1 << 20;
    hello.gpus.resize(gpus);
    hello.agent_incarnation = incarnation;
    Tell(kAgent, hello);
  }
  /// Worker `index` of the node, on connection kWorker0 + index.
  void AddWorker(std::uint32_t index = 0, std::uint64_t incarnation = 100,
                 std::vector<protocol::HeldLease> held = {}, bool gpu = false) {
    Join(kWorker0 + index, Role::kWorker, "node");
    protocol::RegisterWorker hello;
    hello.node = "node";
    hello.index = index;
    hello.agent_incarnation = 1;
    hello.worker_incarnation = incarnation + index;
    hello.pid = 1000 + index;
    hello.capacity = {1000, gpu ? 1u : 0u, 1 << 20};
    hello.numerics = gpu ? Numerics::kCuda : Numerics::kCpu;
    hello.held = std::move(held);
    Tell(kWorker0 + index, hello);
  }
  /// As AddWorker, of one of the agent's GPUs.
  void AddGpuWorker(std::uint32_t index) { AddWorker(index, 100, {}, true); }
  JobId Submit(const std::string& key, const std::string& kind = "noop", std::int32_t priority = 0,
               PeerId by = kOps) {
    protocol::SubmitJob submit;
    submit.submission_key = key;
    submit.kind = kind;
    submit.root.op = kind == "stream" ? "stream.plan" : "root";
    submit.priority = priority;
    Tell(by, submit);
    const auto* submitted = Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  }
  void Finish(PeerId worker, const protocol::TaskLease& lease,
              std::vector<protocol::TaskSpec> spawned = {}, Outcome outcome = {},
              std::string result = "") {
    protocol::TasksFinished finished;
    finished.items.push_back({lease.lease,
                              lease.task,
                              std::move(outcome),
                              std::move(result),
                              std::move(spawned),
                              0,
                              0,
                              {}});
    Tell(worker, finished);
  }
  void Renew(PeerId worker, const LeaseNumber& lease, std::uint64_t progress,
             std::int64_t cpu_us = 0) {
    protocol::RenewLeases renew;
    renew.items.push_back({lease, progress, cpu_us});
    Tell(worker, renew);
  }
  /// By SIGSEGV, unless another signal is named.
  void Exited(std::uint32_t index, std::uint64_t incarnation, int signal = SIGSEGV) {
    Tell(kAgent, protocol::WorkerExited{"node", index, incarnation, signal});
  }
  protocol::JobRow Row(JobId job) {
    Tell(kOps, protocol::DescribeJobs{{job}, 0});
    const auto* described = Find<protocol::JobsDescribed>();
    return described == nullptr || described->jobs.empty() ? protocol::JobRow{}
                                                           : described->jobs.front();
  }

  /// The first message of that type that was sent by the last call, or null.
  template <typename Message>
  const Message* Find() const {
    for (const SendAction& send : sent_) {
      if (const auto* message = std::get_if<Message>(&send.body)) return message;
    }
    return nullptr;
  }
  template <typename Message>
  const Message* FindFor(PeerId peer) const {
    for (const SendAction& send : sent_) {
      const auto* message = std::get_if<Message>(&send.body);
      if (message != nullptr && send.peer == peer) return message;
    }
    return nullptr;
  }
  /// All tasks granted by the last call.
  std::vector<protocol::TaskLease> Granted() const {
    std::vector<protocol::TaskLease> tasks;
    for (const SendAction& send : sent_) {
      const auto* granted = std::get_if<protocol::LeasesGranted>(&send.body);
      if (granted != nullptr) {
        tasks.insert(tasks.end(), granted->tasks.begin(), granted->tasks.end());
      }
    }
    return tasks;
  }
  std::vector<protocol::ShardLease> Shards() const {
    std::vector<protocol::ShardLease> shards;
    for (const SendAction& send : sent_) {
      const auto* granted = std::get_if<protocol::LeasesGranted>(&send.body);
      if (granted != nullptr) {
        shards.insert(shards.end(), granted->shards.begin(), granted->shards.end());
      }
    }
    return shards;
  }
  void Revoke(const std::string& key) {
    sent_.clear();
    scheduler_.Revoke(key, now_);
  }
  /// The scheduler dies and restarts from its durable state.
  void Restart() {
    sent_.clear();
    replayed_ = scheduler_.Start(now_);
    if (!replayed_.ok()) return;
    Join(kOps, Role::kOperator, "ops");
    Join(kAgent, Role::kWorker, "node");
  }

  void StepClock(std::int64_t seconds) { scheduler_.StepClock(seconds); }
  Core& core() { return scheduler_.core(); }
  const Status& replayed() const { return replayed_; }
  std::vector<SendAction>& sent() { return sent_; }
  std::vector<JournalRecord>& disk() { return scheduler_.disk(); }

 private:
  TimeMs now_ = 1000;
  std::vector<SendAction> sent_;
  InProcessScheduler scheduler_;
  Status replayed_;
};

inline protocol::TaskSpec Spec(const std::string& op = "step", std::uint32_t group = 0,
                               std::vector<std::uint32_t> depends_on = {}) {
  protocol::TaskSpec spec;
  spec.op = op;
  spec.group = group;
  spec.depends_on = std::move(depends_on);
  return spec;
}

inline Outcome Failure(absl::StatusCode code) {
  return {static_cast<std::int32_t>(code), "it went wrong"};
}

}  // namespace patchbay::scheduler

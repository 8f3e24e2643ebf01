// Lending in calm runs: long tasks of one team on all cores, and another team that comes for its
// share.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/team_policy.h"
#include "tests/scheduler/in_process_scheduler.h"
#include "tests/sim/share_run.h"

namespace patchbay::sim {
namespace {

using scheduler::InProcessScheduler;
using scheduler::PeerId;
using scheduler::Role;
using scheduler::SendAction;

constexpr PeerId kLendAgent = 1, kLendOperator = 2, kLendWorker0 = 10, kBorrower = 100,
                 kOwner = 101;
constexpr TimeMs kOwnersMs = 30'000;
/// From the time when it is due until the owner has its share: a core at each tick.
constexpr TimeMs kHandedBackMs = 3'000;
/// A team that had no work for so long is not thought to want its cores.
constexpr TimeMs kLentAgainMs = 62'000;

struct Running {
  TaskLease lease;
  TimeMs since = 0, ends = 0;
  bool borrowed = false;
};

class LendRun {
 public:
  explicit LendRun(std::uint64_t seed)
      : dice_(seed),
        scheduler_({}, [this](SendAction&& send) { inbox_.push_back(std::move(send)); }) {
    result_.seed = seed;
  }

  RunResult Run() {
    Draw();
    if (!scheduler_.Start(now_).ok()) Broken("the scheduler does not start");
    StartCluster();
    Tell(kLendOperator, protocol::ApplyTeams{DumpJson(JsonOf(policy_)), "", ""});
    Submit(kBorrower);
    Pass(dice_.Between(1'000, 25'000));
    if (Count(true) != lent_) Broken("idle cores are not lent");
    owner_came_ = now_;
    Submit(kOwner);
    Pass(std::max<TimeMs>(policy_.reclaim_after_ms, kHandedBackMs) + kHandedBackMs);
    if (Count(false) < owed_)
      Broken(StrCat("the owner has ", Count(false), " of ", owed_, " cores"));
    Pass(kOwnersMs);
    if (returned_ > owed_)
      Broken(StrCat(returned_, " tasks are handed back for ", owed_, " cores"));
    Tell(kOwner, protocol::CancelJob{job_of_[kOwner]});
    owner_came_ = 0;
    Pass(kLentAgainMs);
    if (Count(true) != lent_) Broken("cores that nobody wants any more are not lent again");
    return result_;
  }

 private:
  void Broken(const std::string& what) {
    if (result_.violation.empty()) result_.violation = StrCat("I23: ", what);
  }
  void Draw() {
    cores_ = static_cast<std::size_t>(dice_.Between(2, 6));
    running_.resize(cores_);
    policy_.reclaim_after_ms = static_cast<std::uint32_t>(dice_.Between(1'500, 10'000));
    policy_.teams["borrower"].weight_millis =
        static_cast<std::uint32_t>(dice_.Between(1, 3)) * 1000;
    model::TeamRules& owner = policy_.teams["owner"];
    owner.weight_millis = static_cast<std::uint32_t>(dice_.Between(1, 3)) * 1000;
    if (dice_.Chance(0.5)) owner.guaranteed.cpu_millis = 1000 * (1 + dice_.Below(cores_ - 1));
    Dice more(result_.seed + (1ull << 42));  // runs in which all is lent are as before
    if (more.Chance(0.5)) owner.lend_percent = static_cast<std::uint32_t>(more.Below(4)) * 25;
    kept_millis_ = owner.guaranteed.cpu_millis * (100 - owner.lend_percent) / 100;
    lent_ = (cores_ * 1000 - kept_millis_) / 1000;
    const std::uint64_t weights = policy_.teams["borrower"].weight_millis + owner.weight_millis;
    owed_ = std::max<std::size_t>({cores_ * owner.weight_millis / weights,
                                   owner.guaranteed.cpu_millis / 1000, 1});  // one of any share
  }
  void Tell(PeerId peer, Body body) { scheduler_.Tell(peer, std::move(body), ++request_, now_); }
  void StartCluster() {
    scheduler_.Join(kLendOperator, Role::kOperator, "ops");
    scheduler_.Join(kBorrower, Role::kSubmitter, "bob", "borrower");
    scheduler_.Join(kOwner, Role::kSubmitter, "ann", "owner");
    scheduler_.Join(kLendAgent, Role::kWorker, "node");
    protocol::RegisterAgent agent;
    agent.node = agent.host_identity = "node";
    agent.cpus = static_cast<std::uint32_t>(cores_);
    agent.memory_bytes = 1ull << 32;
    agent.agent_incarnation = 1;
    Tell(kLendAgent, agent);
    for (std::uint32_t i = 0; i < cores_; ++i) {
      scheduler_.Join(kLendWorker0 + i, Role::kWorker, "node");
      protocol::RegisterWorker worker;
      worker.node = worker.host_identity = "node";
      worker.index = i;
      worker.agent_incarnation = 1;
      worker.worker_incarnation = worker.pid = 100 + i;
      worker.capacity = {1000, 0, 1ull << 30};
      Tell(kLendWorker0 + i, worker);
    }
  }
  void Submit(PeerId peer) {
    protocol::SubmitJob submit;
    submit.root.op = "root";
    submit.submission_key = submit.kind = "batch";
    Tell(peer, submit);
  }
  std::size_t Count(bool borrowed) const {
    std::size_t lent = 0;
    for (const auto& queue : running_) lent += !queue.empty() && queue.front().borrowed ? 1 : 0;
    return borrowed ? lent : cores_ - lent;
  }
  /// Cores that the owner does not lend are idle, or its own.
  void CheckKept() {
    std::size_t owners = 0;
    for (const auto& queue : running_) owners += !queue.empty() && !queue.front().borrowed ? 1 : 0;
    const std::size_t used = std::max<std::size_t>(owners * 1000, kept_millis_);
    if (Count(true) * 1000 + used > cores_ * 1000) Broken("a core is lent that its owner keeps");
  }
  void Pass(TimeMs ms) {
    for (const TimeMs end = now_ + ms; now_ < end && result_.violation.empty(); now_ += 10) {
      for (const SendAction& send : std::exchange(inbox_, {})) Deliver(send);
      for (std::size_t i = 0; i < cores_; ++i) Work(i);
      CheckKept();
      if (now_ % 100 == 0) scheduler_.Tick(now_);
      if (now_ % 500 == 0) Beat();
    }
    const Status sound = scheduler_.core().CheckInvariants();
    if (!sound.ok()) Broken(std::string(MessageOf(sound)));
  }
  void Beat() {
    Tell(kLendAgent, protocol::Heartbeat{});
    for (std::size_t i = 0; i < cores_; ++i) {
      protocol::RenewLeases renew;
      for (const Running& one : running_[i]) {
        const bool runs = &one == &running_[i].front();
        const std::int64_t cpu_us = runs ? (now_ - one.since) * 1'000 : 0;
        renew.items.push_back({one.lease.lease, ++progress_, cpu_us});
      }
      Tell(kLendWorker0 + i, renew);
    }
  }
  void Deliver(const SendAction& send) {
    if (const auto* submitted = std::get_if<protocol::JobSubmitted>(&send.body)) {
      job_of_[send.peer] = submitted->job;
    } else if (const auto* granted = std::get_if<LeasesGranted>(&send.body)) {
      for (const TaskLease& lease : granted->tasks) Take(send.peer - kLendWorker0, lease);
    } else if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&send.body)) {
      for (const LeaseNumber& lease : revoked->leases) Drop(send.peer - kLendWorker0, lease);
    } else if (std::holds_alternative<protocol::RequestFailed>(send.body)) {
      Broken("a request is refused");
    }
  }
  /// The first task of a job spawns the others.
  void Take(std::size_t worker, const TaskLease& lease) {
    const bool borrowed = lease.task.job == job_of_[kBorrower];
    const TimeMs cost = lease.task.index == 0 ? 10
                        : borrowed            ? dice_.Between(60'000, 400'000)
                                              : dice_.Between(50, 400);
    running_[worker].push_back({lease, now_, now_ + cost, borrowed});
  }
  void Drop(std::size_t worker, const LeaseNumber& lease) {
    const auto found = std::find_if(running_[worker].begin(), running_[worker].end(),
                                    [&](const Running& one) { return one.lease.lease == lease; });
    if (found == running_[worker].end()) return;
    const TimeMs ran = now_ - found->since;
    if (found->borrowed) {
      ++returned_;
      if (owner_came_ == 0) Broken("a task is handed back that nobody had work for");
      if (ran + 20 < policy_.reclaim_after_ms)
        Broken(StrCat("a task is handed back after ", ran, " ms"));
    }
    running_[worker].erase(found);
  }
  void Work(std::size_t worker) {
    auto& queue = running_[worker];
    if (queue.empty() || queue.front().ends > now_) return;
    const Running done = queue.front();
    queue.erase(queue.begin());
    if (!queue.empty()) queue.front().ends += now_ - queue.front().since;
    protocol::TasksFinished finished;
    auto& item = finished.items.emplace_back();
    item.lease = done.lease.lease;
    item.task = done.lease.task;
    item.cost.cpu_us = (now_ - done.since) * 1000;
    protocol::TaskSpec part;
    part.op = done.borrowed ? "long" : "short";
    if (done.lease.task.index == 0) item.spawned.assign(2'000, part);
    Tell(kLendWorker0 + worker, finished);
  }

  Dice dice_;
  InProcessScheduler scheduler_;
  RunResult result_;
  model::TeamPolicy policy_;
  std::size_t cores_ = 0, owed_ = 0, returned_ = 0;
  std::size_t kept_millis_ = 0, lent_ = 0;     ///< the owner's; cores for the borrower
  std::vector<std::vector<Running>> running_;  ///< by worker; the first one runs
  std::map<PeerId, JobId> job_of_;
  std::vector<SendAction> inbox_;
  TimeMs now_ = 1'000, owner_came_ = 0;
  std::uint64_t request_ = 0, progress_ = 0;
};

}  // namespace

RunResult RunLending(std::uint64_t seed) { return LendRun(seed).Run(); }

}  // namespace patchbay::sim

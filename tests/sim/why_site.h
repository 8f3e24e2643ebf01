// A small cluster around the real core whose every step is drawn from a seed, so that a copy of it
// is a replay of the same steps.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/model/jobs/team_policy.h"
#include "tests/scheduler/in_process_scheduler.h"
#include "tests/sim/sim_world.h"

namespace patchbay::sim {

/// A worker, and what the scheduler gave it.
struct SiteWorker {
  scheduler::PeerId peer = 0;
  std::uint64_t incarnation = 0;
  protocol::Resources capacity;
  Numerics numerics = Numerics::kCpu;
  std::map<LeaseNumber, TaskLease> tasks;
  std::map<LeaseNumber, ShardLease> shards;
};

struct SiteNode {
  std::string name;
  scheduler::PeerId peer = 0;
  std::uint64_t incarnation = 0;
  protocol::Resources capacity;
  bool silent = false;
  std::vector<SiteWorker> workers;
};

/// A job, as its submitter knows it.
struct SiteJob {
  JobId id = 0;
  std::size_t user = 0;
  bool is_stream = false, attached = false;
  std::size_t host = 0;  ///< node beside which its trainer is
  std::uint64_t trainer_incarnation = 0;
  std::map<std::uint32_t, std::uint64_t> generations;  ///< by slot
  Numerics numerics = Numerics::kCpu;
};

class Site {
 public:
  explicit Site(std::uint64_t seed);
  /// One thing happens, at a later time.
  void Step();

  struct User {
    std::string team, name;
    scheduler::PeerId peer = 0;
  };
  const std::vector<User>& users() const { return users_; }
  const std::map<JobId, SiteJob>& jobs() const { return jobs_; }
  scheduler::Core& core() { return scheduler_.core(); }
  std::uint64_t kills() const { return kills_; }  ///< workers with expired leases
  /// Streams that failed, as one does that no worker could serve for 30 s.
  std::uint64_t failures() const { return failures_; }
  /// Faults of the run so far; empty = none.
  const std::string& broken() const { return broken_; }

  protocol::JobExplained Why(JobId job, scheduler::PeerId peer);
  protocol::JobRow Row(JobId job);
  bool Holds(JobId job) const;
  /// The ring of its trainer is full.
  bool WantsNothing(JobId job) { return jobs_.at(job).attached && Row(job).wanted_cpu_millis == 0; }
  /// Leases that the job was given so far.
  std::uint64_t Given(JobId job) const;

  void Print();  ///< jobs and nodes, on stderr

  // Changes.
  void Change(const Body& body);  ///< by the operator
  /// Time passes in which whoever is not silent sends heartbeats, and no work ends.
  void Pass(TimeMs ms);
  void Answer(const std::string& node);
  void ComeBack();
  void AttachTrainer(JobId job);
  void AddNode(std::size_t host, Numerics numerics);
  bool FinishPlanning();
  /// Work of the job ends, and none of it begins again.
  void End(JobId job);
  model::TeamPolicy& policy() { return policy_; }
  void ApplyPolicy();

 private:
  void Tell(scheduler::PeerId peer, Body body);
  void Deliver();
  void Deliver(const scheduler::SendAction& send);
  void Fence(const protocol::FenceShard& fence);
  void Kill(SiteNode& node, const protocol::KillWorker& kill);
  void Drop(const protocol::LeasesRevoked& revoked, SiteWorker& worker);
  void Take(const protocol::LeasesGranted& granted, SiteWorker& worker);
  void Register(SiteNode& node);
  void RegisterWorker(SiteNode& node, std::uint32_t index);
  void Beat(const SiteNode& node);
  void Submit();
  void Restart();
  void DrawPolicy();
  void DrawMoreRules();
  void FinishOne();
  void FinishTask(SiteWorker& worker, const TaskLease& lease, bool fails);
  void FinishShard(SiteWorker& worker, const ShardLease& lease);
  void Crash();
  SiteNode* SomeNode();
  JobId SomeJob();

  Dice dice_;
  const bool rules_of_all_;
  scheduler::InProcessScheduler scheduler_;
  std::deque<scheduler::SendAction> inbox_;
  bool delivers_ = false;
  std::deque<SiteNode> nodes_;
  std::vector<User> users_;
  std::map<JobId, SiteJob> jobs_;
  std::map<JobId, std::uint64_t> given_;
  model::TeamPolicy policy_;
  std::string broken_;
  std::optional<protocol::JobExplained> explained_;
  std::optional<protocol::JobRow> row_;
  JobId submitted_ = 0;
  TimeMs now_ = 1'000;
  std::uint64_t request_ = 0, incarnation_ = 0, submissions_ = 0, kills_ = 0, failures_ = 0;
};

}  // namespace patchbay::sim

// The world itself. Private to tests/sim.
#pragma once

#include <csignal>

#include "tests/sim/sim_audit.h"
#include "tests/sim/sim_costs.h"
#include "tests/sim/sim_world.h"

namespace patchbay::sim {

/// Request ids of the client, by kind of request; the job's number is added.
inline constexpr std::uint64_t kSubmitRequest = 100, kCancelRequest = 10'000,
                               kRetryRequest = 20'000, kDescribeRequest = 30'000,
                               kPolicyRequest = 5'000;
inline constexpr std::uint64_t kRequestsPerKind = 10'000;
/// A grant into a slot that is another's is refused, and then the next one may cross on its way.
inline constexpr unsigned kMostRefusals = 2;
/// A healed cluster in which nothing ends for so long is stuck.
inline constexpr TimeMs kPatienceMs = 240'000;
inline constexpr char kNoSpare[] = "no spare slot";
/// At the end of a manifest: the stream has units.
inline constexpr std::string_view kUnitsMark = " units";
inline constexpr std::uint64_t kFinishRequest = 1'000'000;  ///< a consumer's, + the unit
inline constexpr auto kAbortedCode = static_cast<std::int32_t>(absl::StatusCode::kAborted);
inline constexpr auto kFailedCode = static_cast<std::int32_t>(absl::StatusCode::kInternal);

/// How many units the plan of that job has.
inline std::uint64_t UnitsOf(JobId job) { return 13 + job % 5; }

/// One line: the message's kind, and its contents.
std::string TextOf(const Body& body);
std::string TextOf(const scheduler::RecordBody& body);

class World {
 public:
  explicit World(const RunOptions& options);
  RunResult Run();

 private:
  // -- sim_world.cc: time, network, scheduler, faults
  void DrawFaults();
  void LeanFaults();
  void BuildCluster();
  void At(TimeMs when, std::function<void()> what);
  /// Runs `what` unless the actor died meanwhile; later if it is frozen.
  void AtActor(Actor& actor, TimeMs when, std::function<void()> what);
  void Note(const std::string& what);
  void Hit(const char* fault) { ++result_.coverage[fault]; }
  void Violation(const std::string& what);
  bool Cut(const Actor& actor) const { return actor.node >= 0 && cut_.count(actor.node) != 0; }
  void ToScheduler(Actor& actor, Body&& body, std::uint64_t request = 0);
  void ToActor(int actor, std::uint32_t connection, std::uint64_t request, Body&& body);
  void Join(Actor& actor);
  void Reconnect(Actor& actor);
  void NoteRegistration(int actor, scheduler::PeerId peer, std::uint64_t worker_incarnation);
  void StartScheduler();
  void TickLoop();
  void CrashScheduler();
  void Perform(scheduler::Actions&& actions);
  void Flush();
  void EveryMean(TimeMs mean, std::function<void()> what);
  void PlanFaults();
  void FreezeWorker();
  void SweepWorkers();
  void WatchLinks();
  void DrawCapacity(SimWorker& worker, bool largest);
  void DrawNode(SimAgent& agent);
  void DrawJob(std::uint64_t number);
  void DrawPlanning(SimJob& job);
  void Heal();
  /// Something ended that ends once: the run may go on for a while.
  void Progressed();
  bool Finished() const;
  scheduler::Instant Now() const { return {now_, 1'700'000'000 + now_ / 1000}; }
  TimeMs Delay() { return dice_.Between(0, faults_.delay_max_ms); }

  // -- sim_ghosts.cc
  void GhostFaults();
  void Vanish();
  void EndNode(SimAgent& agent, bool leaves);
  void RebootHost(int host);
  void CutHost(int host);
  std::string HostOf(const Actor& actor) const;
  TimeMs ProgressOf(const SimTrainer& trainer) const;
  void WatchWaits();

  // -- sim_checks.cc
  void CheckSend(const Actor& actor, std::uint64_t request, const Body& body);
  void CheckWorkerSend(const Actor& actor, std::uint64_t request, const Body& body);
  void CheckGrants(const Actor& actor, const LeasesGranted& granted);
  void CheckRecord(const scheduler::JournalRecord& record);
  void CheckCore();
  static std::vector<TaskLease> Running(const SimWorker& worker);
  void CheckNodeUse(const SimAgent& agent);
  void CheckJob(const SimJob& job);
  void CheckEnd();
  void CheckCosts();
  bool Excused(const SimJob& job) const;
  protocol::WorkCost CostOf(const LeaseNumber& lease) const {
    return options_.costs ? CostAudit::CostOf(lease) : protocol::WorkCost{};
  }
  SimWorker* WorkerOf(int actor);
  std::string TrainersOf(JobId stream) const;

  // -- sim_consumers.cc
  void TendConsumers(SimJob& job);
  void StartOver(SimTrainer& consumer, bool comes_back);
  void EndConsumer(SimTrainer& consumer);
  bool ConsumerReceive(SimTrainer& consumer, const Body& body, std::uint64_t request);
  bool ConsumerLoop(SimTrainer& consumer);
  void TookOfUnit(SimTrainer& consumer, Position at);
  void CheckUnitsTold(const Actor& actor, const protocol::UnitsAssigned& told);

  // -- sim_workers.cc
  void StartAgent(SimAgent& agent);
  void AgentLoop(SimAgent& agent);
  void AgentReceive(SimAgent& agent, Body&& body, std::uint64_t request);
  void StartWorker(SimAgent& agent, SimWorker& worker);
  void KillWorkerProcess(SimAgent& agent, SimWorker& worker, bool report, int signal = SIGKILL);
  void CrashAgent(SimAgent& agent);
  void WorkerLoop(SimAgent& agent, SimWorker& worker);
  void WorkerReceive(SimAgent& agent, SimWorker& worker, Body&& body);
  void Register(SimWorker& worker);
  void DropFormer(SimWorker& worker);
  void TakeLeases(SimWorker& worker, LeasesGranted&& granted);
  void DropLeases(SimWorker& worker, const std::vector<LeaseNumber>& revoked);
  void RunNext(SimAgent& agent, SimWorker& worker);
  void RunTask(SimAgent& agent, SimWorker& worker, SimWorker::Lane& lane);
  void FinishTask(SimAgent& agent, SimWorker& worker, const TaskLease& lease);
  void FinishShard(SimAgent& agent, SimWorker& worker, const ShardLease& lease);
  enum class Mapping : std::uint8_t { kThere, kLater, kRefused, kBarred };
  Mapping MapRing(SimTrainer& trainer, SimWorker& worker, const ShardLease& lease);
  void ReturnBadShard(SimWorker& worker, const ShardLease& lease);
  void ReturnShard(SimWorker& worker, const ShardLease& lease, absl::StatusCode code);
  void Report(SimWorker& worker, bool all);
  protocol::TasksFinished::Item Outcome(const TaskLease& lease);
  void SpawnPlan(std::vector<protocol::TaskSpec>& spawned, unsigned images,
                 const std::string& last);
  void SpawnSlide(std::vector<protocol::TaskSpec>& spawned, const TaskId& open, bool bad);
  void SpawnAfterSlides(std::vector<protocol::TaskSpec>& spawned, std::uint32_t slides);

  // -- sim_users.cc
  void SubmitLoop(SimJob& job);
  Actor& UserOf(const SimJob& job) { return users_.empty() ? client_ : users_[job.user]; }
  void JoinUsers();
  void ApplyPolicy();
  void SendSubmit(SimJob& job);
  void Command(SimJob& job);
  const SimJob* FindJob(JobId id) const;
  void ClientReceive(Body&& body, std::uint64_t request);
  void StartTrainer(SimJob& job, std::uint32_t rank);
  void NewTrainerProcess(SimTrainer& trainer);
  void TrainerLoop(SimTrainer& trainer);
  void TrainerReceive(SimTrainer& trainer, Body&& body);
  void Attach(SimTrainer& trainer);
  void Announce(SimTrainer& trainer);
  void AnnounceOne(SimTrainer& trainer, std::uint32_t slot);
  void Step(SimTrainer& trainer);
  void Write(SimTrainer& trainer, const ShardLease& lease);
  void Arrive(SimTrainer& trainer, const ShardLease& lease);
  void CheckRefusal(SimTrainer& trainer, const ShardLease& lease);
  void OnFence(SimTrainer& trainer, const protocol::FenceShard& fence);
  void AnswerFence(SimTrainer& trainer, const protocol::FenceShard& fence, bool counted);
  void ProcessEnded(std::int64_t pid);
  void Move(SimTrainer& trainer, const data::ShardMove& move);
  void CheckBatch(SimTrainer& trainer, std::uint32_t slot, Position at);
  bool ProcessLives(std::int64_t pid) const { return live_pids_.count(pid) != 0; }
  SimTrainer* FindTrainer(JobId stream, std::uint32_t rank);
  protocol::SlotRow RowOf(SimTrainer& trainer, std::uint32_t slot);

  struct Event {
    TimeMs at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  const RunOptions options_;
  Dice dice_;
  Faults faults_;
  RunResult result_;
  TimeMs now_ = 0, heal_at_ = 0, end_at_ = 0;
  bool healed_ = false;
  std::uint64_t next_order_ = 0, next_incarnation_ = 1;
  std::priority_queue<Event> queue_;

  TimeMs vanished_at_ = 0;              ///< something ended last
  std::map<int, std::uint32_t> boots_;  ///< number of boots, by host

  // The scheduler's process and disk.
  std::unique_ptr<scheduler::Core> core_, shadow_;
  std::uint32_t scheduler_life_ = 0;
  TimeMs scheduler_started_ = 0;
  bool crashed_at_record_ = false;
  std::vector<scheduler::JournalRecord> disk_, cache_;
  bool flushing_ = false;
  std::uint64_t snapshot_sequence_ = 0;
  std::string snapshot_;
  std::map<scheduler::PeerId, std::pair<int, std::uint32_t>> peers_;
  std::map<int, std::pair<scheduler::PeerId, std::uint32_t>> peer_of_;
  std::map<int, TimeMs> heard_;  ///< when a registered worker spoke last
  scheduler::PeerId next_peer_ = 1;
  scheduler::PeerId sending_to_ = 0;
  std::map<scheduler::PeerId, std::uint64_t> registered_;  ///< worker incarnation, as it said last
  Audit audit_;
  CostAudit costs_;

  // The cluster.
  std::map<int, Actor*> actors_;
  std::map<int, SimWorker*> worker_of_;
  bool any_cuda_ = false;
  int next_actor_ = 1;
  std::vector<std::unique_ptr<SimAgent>> agents_;
  std::deque<SimTrainer> trainers_;
  std::deque<SimJob> jobs_;
  Actor client_;
  std::deque<Actor> users_;  ///< with --teams, those that submit; else client_ does
  std::set<int> cut_;
  std::set<std::int64_t> live_pids_;
  std::int64_t next_pid_ = 100;
  std::map<std::pair<JobId, std::uint32_t>, std::uint64_t> attached_;  ///< as the core sees it
  std::map<LeaseNumber, std::uint64_t> ring_of_;  ///< trainer incarnation a shard lease is for
  std::map<TaskId, int> attempts_;
  std::uint64_t policies_ = 0;  ///< sent so far
  std::uint32_t next_rank_ = 0;
  /// Consumers that this scheduler told that they have the unit, the last one last.
  std::map<std::pair<JobId, std::uint64_t>, std::deque<std::uint32_t>> told_;
  std::map<std::pair<std::uint64_t, ShardId>, unsigned> refusals_;  ///< by ring, of live grants
};

}  // namespace patchbay::sim

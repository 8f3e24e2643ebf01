#include "tests/sim/share_run.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/team_policy.h"
#include "tests/scheduler/in_process_scheduler.h"

namespace patchbay::sim {
namespace {

using scheduler::InProcessScheduler;
using scheduler::PeerId;
using scheduler::Role;
using scheduler::SendAction;

constexpr PeerId kAgent = 1, kOperator = 2, kWorker0 = 10, kUser0 = 100;
constexpr std::uint32_t kShardsOfBatch = 4, kTasks = 10'000;
/// A ring that holds more work than its share of the cores does while others' shards are made: with
/// fewer slots the ring, not the share, would bound what small shards get beside large ones.
constexpr std::uint32_t kSlots = 8;
constexpr std::int64_t kTickUs = 1'000;
/// Lags and leads that shares have by design, as work that others may be given first; the credit of
/// guarantees; and the time in which each worker runs a task of a user whose stream takes the rest.
constexpr std::int64_t kLagUs = 250'000, kQueueUs = 100'000, kCreditUs = 1'000'000;
constexpr std::int64_t kShardsAhead = 8;  ///< charged before they are made
constexpr double kOwnTaskMs = 1'000;
/// Beside shards a task has half a core at least. Tasks of a third team are not owed a part of one.
constexpr double kHalfOfCore = 0.25, kPartOfCore = 0.8;
constexpr TimeMs kLeftMs = 3'000;  ///< after it was due: it takes that long to be sure
constexpr TimeMs kWarmUpMs = 5'000, kMeasuredMs = 20'000, kIdleMs = 3'000, kReturnMs = 2'000;
/// Batches of 16 patches in shards of 4.
constexpr char kPlan[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":16777216,"global_batch":16,)"
    R"("tail":"keep","world_size":1,"shard_patches":4,"numerics":"cpu"}})";

/// A key with a stream, a batch job, or both. They always want more, but for a trainer with a step.
struct User {
  std::string team, name;
  std::int64_t task_us = 0, shard_us = 0;  ///< cost of each; 0: it has no such job
  TimeMs step_ms = 0, next_step = 0;       ///< time that its trainer takes for a batch
  PeerId peer = 0;
  bool is_long = false;  ///< its tasks take minutes
  JobId batch = 0, stream = 0;
  std::map<std::uint32_t, std::uint64_t> generations;  ///< by slot
  std::map<std::uint64_t, std::uint32_t> counted;      ///< by batch
  std::map<std::uint64_t, std::uint32_t> slot_of;
  std::uint64_t next_batch = 0;
  std::int64_t made_us = 0;
  TimeMs served[2] = {};  ///< when its batch job, and its stream, last had work at a worker
  double wanted = 0, expected = 0;  ///< cores
};

struct Work {
  User* user = nullptr;
  std::int64_t left_us = 0, cost_us = 0;
  TaskLease task;
  ShardLease shard;
};

struct Maker {
  PeerId peer = 0;
  std::deque<Work> tasks, shards;
};

/// The level at which the sum over all is `amount`, or all have what they want.
template <typename Of>
double Level(double amount, const Of& sum_at) {
  double low = 0, high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double level = (low + high) / 2;
    (sum_at(level) < amount ? low : high) = level;
  }
  return high;
}

class ShareRun {
 public:
  ShareRun(std::uint64_t seed, bool trace)
      : dice_(seed),
        trace_(trace),
        scheduler_({}, [this](SendAction&& send) { inbox_.push_back(std::move(send)); }) {
    result_.seed = seed;
  }

  RunResult Run() {
    Draw();
    if (!scheduler_.Start(now_).ok()) return Broken("the scheduler does not start");
    StartCluster();
    for (int part = 0; part < 2 && result_.violation.empty(); ++part) {
      DrawPolicy();
      if (part == 1) Restart();
      Apply();
      if (part == 0) Submit();
      Pass(Stretched(kWarmUpMs));
      if (IsLong()) Pass(policy_.reclaim_after_ms + kLeftMs);
      Expect();
      for (User& user : users_) user.made_us = 0, user.served[0] = user.served[1] = now_;
      checks_waits_ = !IsLong();
      Pass(Stretched(kMeasuredMs));
      checks_waits_ = part == 1 && !IsLong();
      Compare(part);
    }
    for (User& user : users_) {
      if (user.shard_us != 0 && user.task_us == 0 && user.step_ms == 0) Return(user);
    }
    if (trace_) std::fprintf(stderr, "the longest wait is %g of its bound\n", worst_);
    return result_;
  }

 private:
  RunResult Broken(const std::string& what) {
    if (result_.violation.empty()) result_.violation = what;
    return result_;
  }
  void Draw() {
    if (result_.seed % 8 == 3) return DrawSlow();
    if (result_.seed % 8 == 5) return DrawLong();
    cores_ = static_cast<std::uint32_t>(1 + dice_.Below(4));
    speed_ = dice_.Chance(0.3) ? 0.3 : 1;
    power_ = cores_ * speed_;
    makers_.resize(cores_);
    const std::uint64_t teams = 1 + dice_.Below(3);
    for (std::uint64_t t = 0; t < teams; ++t) {
      const std::uint64_t users = 1 + dice_.Below(2);
      for (std::uint64_t u = 0; u < users; ++u) {
        User user;
        user.team = StrCat("team", t);
        user.name = StrCat("user", t, "x", u);
        const std::uint64_t kind = dice_.Below(3);
        if (kind != 0) user.task_us = dice_.Between(20, 400) * 1000;
        if (kind != 1) user.shard_us = dice_.Between(5, 30) * 1000;
        user.wanted = power_;
        if (user.task_us == 0 && dice_.Chance(0.4)) {
          const double batch_ms = static_cast<double>(kShardsOfBatch * user.shard_us) / 1000;
          user.wanted = static_cast<double>(dice_.Between(10, 90)) / 100 * power_;
          user.step_ms = static_cast<TimeMs>(batch_ms / user.wanted);
          user.wanted = batch_ms / static_cast<double>(user.step_ms);
        }
        user.peer = kUser0 + users_.size();
        users_.push_back(user);
      }
    }
  }
  /// A user with tasks alone, on slow cores that others' shards share: its tasks take several times
  /// their processor time, and it has its share only with one on each core.
  void DrawSlow() {
    cores_ = 4;
    speed_ = 0.3;
    power_ = cores_ * speed_;
    makers_.resize(cores_);
    for (std::size_t u = 0; u < 3; ++u) {
      User user;
      user.team = StrCat("team", u / 2);
      user.name = StrCat("user", u);
      user.task_us = dice_.Between(100, 300) * 1000;
      if (u != 0) user.shard_us = dice_.Between(20, 30) * 1000;
      user.wanted = power_;
      user.peer = kUser0 + u;
      users_.push_back(user);
    }
  }
  /// A user whose tasks of minutes have all cores before another one's stream comes, which
  /// may be due more than half of each core.
  void DrawLong() {
    cores_ = static_cast<std::uint32_t>(2 + dice_.Below(3));
    power_ = cores_;
    makers_.resize(cores_);
    const std::size_t users = dice_.Chance(0.5) ? 3 : 2;  // the third one has short tasks
    for (std::size_t u = 0; u < users; ++u) {
      User user;
      user.team = StrCat("team", u);
      user.name = StrCat("user", u);
      user.is_long = u == 0;
      if (u == 1) user.shard_us = dice_.Between(5, 30) * 1000;
      if (u != 1) user.task_us = dice_.Between(u == 0 ? 60'000 : 20, u == 0 ? 400'000 : 400) * 1000;
      user.wanted = power_;
      user.peer = kUser0 + u;
      users_.push_back(user);
    }
  }
  bool IsLong() const { return users_.front().is_long; }
  void DrawPolicy() {
    static constexpr std::uint32_t kWeights[] = {500, 1000, 1000, 2000, 3000};
    policy_ = {};
    for (User& user : users_) {
      model::TeamRules& rules = policy_.teams[user.team];
      rules.weight_millis = kWeights[dice_.Below(5)];
      const bool guarantees = dice_.Chance(0.4);
      rules.guaranteed.cpu_percent =
          guarantees ? static_cast<std::uint32_t>(10 * dice_.Below(4)) : 0;
    }
    if (!IsLong()) return;
    policy_.reclaim_after_ms = static_cast<std::uint32_t>(dice_.Between(1'500, 5'000));
    if (!dice_.Chance(0.5)) return;
    for (auto& [name, rules] : policy_.teams) {
      rules.guaranteed.cpu_percent = name == "team1" ? 80 : 0;
    }
  }
  /// Shares as guarantees and weights give them to users that all want more.
  void Expect() {
    std::map<std::string, double> wants, given;
    double wanted = 0;
    for (const User& user : users_) {
      wants[user.team] += user.wanted;
      wanted += user.wanted;
    }
    const auto of = [&](const std::string& team, double level) {
      const model::TeamRules& rules = policy_.teams.at(team);
      const double least = power_ * rules.guaranteed.cpu_percent / 100.0;
      return std::min(wants[team], std::max(least, level * rules.weight_millis / 1000.0));
    };
    const double level = Level(std::min(power_, wanted), [&](double at) {
      double sum = 0;
      for (const auto& [team, want] : wants) sum += of(team, at);
      return sum;
    });
    for (const auto& [team, want] : wants) given[team] = of(team, level);
    for (User& user : users_) {
      const double share = Level(given[user.team], [&](double at) {
        double sum = 0;
        for (const User& one : users_) sum += one.team == user.team ? std::min(one.wanted, at) : 0;
        return sum;
      });
      user.expected = std::min(user.wanted, share);
    }
  }
  /// The time for which a job that has work may have none of it at a worker: until its user's share
  /// is due, behind one piece of work of each other user.
  double BoundMs(const User& user, bool stream) const {
    std::int64_t before_us = kLagUs + kQueueUs;
    for (const User& one : users_) {
      if (&one != &user) before_us += std::max(one.task_us, one.shard_us);
    }
    for (const auto& [team, rules] : policy_.teams) {
      if (team != user.team) before_us += kCreditUs * cores_ * rules.guaranteed.cpu_percent / 100;
    }
    double us = static_cast<double>(before_us) / power_;
    std::int64_t of_team_us = 0;  // its team is charged for its other users too
    double team = 0;
    for (const User& one : users_) {
      if (one.team != user.team) continue;
      of_team_us += std::max(one.task_us, one.shard_us);
      team += one.expected;
    }
    us += static_cast<double>(of_team_us) / team;
    us += static_cast<double>(user.task_us + kShardsAhead * user.shard_us) / user.expected;
    return us / 1000 + (!stream && user.shard_us != 0 ? kOwnTaskMs : 0);
  }
  /// A user's stream goes before its batch job, but for a task a second on workers that run no
  /// other's.
  bool IsEntitled(const User& user, bool stream) const {
    return stream || user.shard_us == 0 ||
           std::none_of(users_.begin(), users_.end(),
                        [&](const User& one) { return &one != &user && one.task_us != 0; });
  }
  /// Each job with work to be made is served within twice its bound.
  void CheckWaits() {
    for (const Maker& maker : makers_) {
      for (const Work& work : maker.tasks) work.user->served[0] = now_;
      for (const Work& work : maker.shards) work.user->served[1] = now_;
    }
    for (User& user : users_) {
      std::size_t full = 0;
      for (auto at = user.counted.lower_bound(user.next_batch); at != user.counted.end(); ++at) {
        full += at->second == kShardsOfBatch ? 1 : 0;
      }
      if (full == kSlots) user.served[1] = now_;
      for (const bool stream : {false, true}) {
        if ((stream ? user.shard_us : user.task_us) == 0 || !IsEntitled(user, stream)) continue;
        const auto waited = static_cast<double>(now_ - user.served[stream ? 1 : 0]);
        const double bound = BoundMs(user, stream);
        worst_ = std::max(worst_, waited / bound);
        if (waited <= 2 * bound) continue;
        Broken(StrCat("I25: ", user.name, stream ? "'s stream" : "'s batch job", " waits for ",
                      waited, " ms, its bound is ", bound));
      }
    }
  }
  void Compare(int part) {
    for (const User& user : users_) {
      const double had = static_cast<double>(user.made_us) / 1000.0 / Stretched(kMeasuredMs);
      const std::string line =
          StrCat("part ", part, ": ", user.team, " ", user.name, " weight ",
                 policy_.teams.at(user.team).weight_millis, " guaranteed ",
                 policy_.teams.at(user.team).guaranteed.cpu_percent, " %", " tasks ", user.task_us,
                 " us, shards ", user.shard_us, " us, step ", user.step_ms, " ms: had ", had,
                 " of ", power_, " cores, expected ", user.expected);
      if (trace_) std::fprintf(stderr, "%s\n", line.c_str());
      const double coarse = !IsLong() ? 0 : users_.size() == 2 ? kHalfOfCore : kPartOfCore;
      if (std::abs(had - user.expected) > 0.05 * power_ + coarse) Broken(StrCat("I20: ", line));
    }
  }
  /// A trainer that took nothing for a while wants batches again: its user has its share 250 ms
  /// later, or a second where tasks run, as if it had had it since.
  void Return(User& user) {
    if (!result_.violation.empty()) return;
    user.next_step = now_ + Stretched(kIdleMs);
    Pass(Stretched(kIdleMs));
    user.made_us = 0;
    Pass(Stretched(kReturnMs));
    const bool tasks =
        std::any_of(users_.begin(), users_.end(), [](const User& one) { return one.task_us != 0; });
    const double had_ms = static_cast<double>(user.made_us) / 1000 / user.expected;
    const double late_ms = Stretched(kReturnMs) - had_ms;
    if (trace_) std::fprintf(stderr, "%s is served %g ms late\n", user.name.c_str(), late_ms);
    if (late_ms <= (tasks ? 1'000 : 250) / speed_) return;
    Broken(StrCat("I20: ", user.name, " returned, and was served ", late_ms, " ms late"));
  }

  // -- the cluster
  void Tell(PeerId peer, Body body) { scheduler_.Tell(peer, std::move(body), ++request_, now_); }
  void StartCluster() {
    scheduler_.Join(kOperator, Role::kOperator, "ops");
    scheduler_.Join(kAgent, Role::kWorker, "node");
    protocol::RegisterAgent agent;
    agent.node = "node";
    agent.host_identity = "host";
    agent.cpus = cores_;
    agent.memory_bytes = 1ull << 32;
    agent.agent_incarnation = 1;
    Tell(kAgent, agent);
    for (std::uint32_t i = 0; i < cores_; ++i) Register(i);
    for (const User& user : users_) {
      scheduler_.Join(user.peer, Role::kSubmitter, user.name, user.team);
    }
  }
  void Register(std::uint32_t index) {
    makers_[index] = {};
    makers_[index].peer = kWorker0 + index;
    scheduler_.Join(kWorker0 + index, Role::kWorker, "node");
    protocol::RegisterWorker hello;
    hello.node = "node";
    hello.index = index;
    hello.agent_incarnation = 1;
    hello.worker_incarnation = ++incarnation_;
    hello.pid = static_cast<std::int64_t>(incarnation_);
    hello.host_identity = "host";
    hello.capacity = {1000, 0, 1ull << 30};
    Tell(kWorker0 + index, hello);
  }
  /// The scheduler alone ends; workers start anew, trainers attach again.
  void Restart() {
    Pass(50);
    inbox_.clear();
    if (!scheduler_.Start(now_).ok()) Broken("the scheduler does not start again");
    StartCluster();
    for (User& user : users_) {
      if (user.stream != 0) Attach(user);
    }
  }
  void Apply() { Tell(kOperator, protocol::ApplyTeams{DumpJson(JsonOf(policy_)), "", ""}); }
  void Submit() {
    for (User& user : users_) {
      protocol::SubmitJob submit;
      submit.root.op = "fan";
      submit.submission_key = "batch";
      submit.kind = "batch";
      if (user.task_us != 0) Tell(user.peer, submit);
      submit.root.op = "stream.plan";
      submit.submission_key = submit.kind = "stream";
      if (user.shard_us != 0) Tell(user.peer, submit);
    }
  }
  void Attach(User& user) {
    protocol::AttachTrainer attach;
    attach.stream = user.stream;
    attach.trainer_incarnation = ++incarnation_;
    attach.first_batch = user.next_batch;
    attach.endpoint.host_identity = "host";
    user.counted.clear();
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      attach.slots.push_back(
          {slot, user.generations[slot] += 1, protocol::SlotState::kFree, 0, 0, {}});
    }
    Tell(user.peer, attach);
  }
  User& UserOf(JobId job) {
    return *std::find_if(users_.begin(), users_.end(),
                         [&](const User& user) { return user.batch == job || user.stream == job; });
  }

  // -- time
  /// A slow core needs longer for as much work.
  TimeMs Stretched(TimeMs ms) const { return static_cast<TimeMs>(ms / speed_); }
  void Pass(TimeMs ms) {
    for (const TimeMs end = now_ + ms; now_ < end && result_.violation.empty(); ++now_) {
      Deliver();
      for (Maker& maker : makers_) Work1ms(maker);
      for (User& user : users_) Train(user);
      if (checks_waits_) CheckWaits();
      if (now_ % 100 == 0) scheduler_.Tick(now_);
      if (now_ % 500 == 0) Beat();
      if (now_ % 1'000 == 0 && IsLong()) Renew();
      if (now_ % 1'000 == 0) {
        const Status sound = scheduler_.core().CheckInvariants();
        if (!sound.ok()) Broken(std::string(MessageOf(sound)));
      }
    }
  }
  void Beat() {
    Tell(kAgent, protocol::Heartbeat{});
    for (const Maker& maker : makers_) Tell(maker.peer, protocol::Heartbeat{});
    for (const User& user : users_) Tell(user.peer, protocol::Heartbeat{});
  }
  /// Tasks of minutes are renewed, with what the one that runs has cost so far.
  void Renew() {
    for (const Maker& maker : makers_) {
      protocol::RenewLeases renew;
      for (const Work& work : maker.tasks) {
        renew.items.push_back({work.task.lease, ++progress_, work.cost_us - work.left_us});
      }
      if (!renew.items.empty()) Tell(maker.peer, renew);
    }
  }
  void Deliver() {
    const std::vector<SendAction> now = std::exchange(inbox_, {});
    for (const SendAction& send : now) {
      if (const auto* submitted = std::get_if<protocol::JobSubmitted>(&send.body)) {
        User& user = users_[send.peer - kUser0];
        (user.batch == 0 && user.task_us != 0 ? user.batch : user.stream) = submitted->job;
      } else if (const auto* granted = std::get_if<LeasesGranted>(&send.body)) {
        Take(makers_[send.peer - kWorker0], *granted);
      } else if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&send.body)) {
        Drop(makers_[send.peer - kWorker0], *revoked);
      } else if (const auto* failed = std::get_if<protocol::RequestFailed>(&send.body)) {
        if (send.peer == kOperator) Broken(StrCat("refused: ", failed->outcome.cause));
      } else if (const auto* fence = std::get_if<protocol::FenceShard>(&send.body)) {
        Fence(users_[send.peer - kUser0], *fence);
      }
    }
  }
  void Fence(User& user, const protocol::FenceShard& fence) {
    protocol::ShardFenced fenced;
    fenced.stream = fence.stream;
    fenced.lease = fence.lease;
    fenced.shard = fence.shard;
    fenced.row = {
        fence.grant.slot, user.generations[fence.grant.slot], protocol::SlotState::kFree, 0, 0, {}};
    Tell(user.peer, fenced);
  }
  void Take(Maker& maker, const LeasesGranted& granted) {
    for (const TaskLease& lease : granted.tasks) {
      User& user = UserOf(lease.task.job);
      const bool made = lease.op == "part";
      const std::int64_t cost = made ? user.task_us : kTickUs;
      // Workers plan on a thread of their own.
      const auto at = lease.planning ? maker.tasks.begin() : maker.tasks.end();
      maker.tasks.insert(at, {&user, cost, cost, lease, {}});
    }
    for (const ShardLease& lease : granted.shards) {
      User& user = UserOf(lease.stream);
      maker.shards.push_back({&user, user.shard_us, user.shard_us, {}, lease});
    }
  }
  /// Tasks that are handed back.
  static void Drop(Maker& maker, const protocol::LeasesRevoked& revoked) {
    std::erase_if(maker.tasks, [&](const Work& work) {
      return std::find(revoked.leases.begin(), revoked.leases.end(), work.task.lease) !=
             revoked.leases.end();
    });
  }
  /// A task and a shard that run at the same time share the core, which others outside may share.
  void Work1ms(Maker& maker) {
    std::vector<std::deque<Work>*> running;
    for (auto* queue : {&maker.tasks, &maker.shards}) {
      if (!queue->empty()) running.push_back(queue);
    }
    for (auto* queue : running) {
      Work& first = queue->front();
      const auto part =
          static_cast<std::int64_t>(speed_ * kTickUs / static_cast<double>(running.size()));
      first.left_us -= part;
      first.user->made_us += part;
      if (first.left_us > 0) continue;
      const Work done = first;
      queue->pop_front();
      queue == &maker.tasks ? FinishTask(maker, done) : FinishShard(maker, done);
    }
  }
  void FinishTask(const Maker& maker, const Work& work) {
    protocol::TasksFinished finished;
    protocol::TasksFinished::Item& item = finished.items.emplace_back();
    item.lease = work.task.lease;
    item.task = work.task.task;
    item.cost.cpu_us = work.cost_us;
    const bool plans = work.task.op == "stream.plan";
    if (plans) item.result = kPlan;
    protocol::TaskSpec part;
    part.op = "part";
    if (work.task.op == "fan") item.spawned.assign(kTasks, part);
    Tell(maker.peer, finished);
    if (plans) Attach(*work.user);
  }
  void FinishShard(const Maker& maker, const Work& work) {
    protocol::ShardsReturned returned;
    protocol::ShardsReturned::Item& item = returned.items.emplace_back();
    item.lease = work.shard.lease;
    item.stream = work.shard.stream;
    item.shard = work.shard.shard;
    item.cost.cpu_us = work.cost_us;
    Tell(maker.peer, returned);
    User& user = *work.user;
    Tell(user.peer, protocol::ShardsCounted{user.stream, 0, {{item.lease, item.shard}}});
    user.slot_of[item.shard.batch] = work.shard.grant.slot;
    ++user.counted[item.shard.batch];
    Train(user);
  }
  void Train(User& user) {
    while (now_ >= user.next_step && user.counted[user.next_batch] == kShardsOfBatch) {
      // A trainer that waited for a batch does not catch up.
      user.next_step = std::max(now_ - 1, user.next_step) + user.step_ms;
      const std::uint32_t slot = user.slot_of[user.next_batch++];
      protocol::AnnounceSlots announce;
      announce.stream = user.stream;
      announce.slots.push_back(
          {slot, ++user.generations[slot], protocol::SlotState::kFree, 0, 0, {}});
      Tell(user.peer, announce);
    }
  }

  Dice dice_;
  const bool trace_;
  InProcessScheduler scheduler_;
  RunResult result_;
  std::uint32_t cores_ = 1;
  bool checks_waits_ = false;
  double worst_ = 0;              ///< longest wait, as a part of its bound
  double speed_ = 1, power_ = 1;  ///< processor time that a core, and all, have in a time
  std::vector<User> users_;
  std::vector<Maker> makers_;
  model::TeamPolicy policy_;
  std::vector<SendAction> inbox_;
  TimeMs now_ = 1'000;
  std::uint64_t request_ = 0, incarnation_ = 0, progress_ = 0;
};

}  // namespace

RunResult RunShares(std::uint64_t seed, bool trace) { return ShareRun(seed, trace).Run(); }

}  // namespace patchbay::sim

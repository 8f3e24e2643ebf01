// A large hospital's cluster in the scheduler's core: nodes x 16 workers, 50 teams x 20 users,
// queued jobs of no-op tasks, and streams of 10^9 patches whose workers and trainers answer at
// once. Work costs 32 ms of a core, so that 16,000 cores do 512 pieces a millisecond: so fast the
// clock goes. Prints grants a second, times of turns in processor time, and memory. Records are
// durable at once; no sockets, no disk.
//   scale_bench [NODES [STREAMS [JOBS [SECONDS]]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/strings.h"
#include "tests/scheduler/in_process_scheduler.h"

namespace patchbay::scheduler {
namespace {

constexpr std::uint32_t kWorkersOfNode = 16, kTeams = 50, kUsersOfTeam = 20, kSlots = 8;
constexpr std::uint32_t kShardsOfBatch = 16, kTasksOfJob = 10, kTimed = 16;
constexpr std::int64_t kWorkUs = 32'000, kScaleCores = 16'000;
constexpr PeerId kAgent0 = 10, kWorker0 = 10'000, kUser0 = 100'000, kTrainer0 = 200'000;
constexpr char kScalePlan[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":1000000000,"global_batch":256,)"
    R"("tail":"keep","world_size":1,"shard_patches":16,"numerics":"cpu"}})";

/// Processor time of this thread: other load on the machine does not count.
double NowMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

double ResidentMib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096 / (1 << 20);
}

struct Turns {
  std::vector<float> ms;
  void Print(const char* name) {
    if (ms.empty()) return;
    std::sort(ms.begin(), ms.end());
    const auto at = [&](double part) {
      return ms[static_cast<std::size_t>(part * static_cast<double>(ms.size() - 1))];
    };
    std::printf("%-28s %9zu turns, p50 %.3f ms, p99 %.3f ms, most %.1f ms\n", name, ms.size(),
                static_cast<double>(at(0.5)), static_cast<double>(at(0.99)),
                static_cast<double>(ms.back()));
    ms.clear();
  }
};

struct StreamState {
  JobId job = 0;
  std::uint32_t node = 0;
  std::map<std::uint64_t, std::uint32_t> counted;
  std::uint64_t generations[kSlots] = {};
};

class Site {
 public:
  explicit Site(std::uint32_t nodes)
      : scheduler_({}, [this](SendAction&& send) { inbox_.push_back(std::move(send)); }),
        nodes_(nodes) {}

  void Start() {
    if (!scheduler_.Start(now_).ok()) std::abort();
    inbox_.clear();
    scheduler_.Join(1, Role::kOperator, "ops");
    for (std::uint32_t user = 0; user < kTeams * kUsersOfTeam; ++user) {
      scheduler_.Join(kUser0 + user, Role::kSubmitter, StrCat("user", user),
                      StrCat("team", user % kTeams));
    }
  }
  void Register(std::uint32_t node) {
    const std::string name = StrCat("node", node);
    scheduler_.Join(kAgent0 + node, Role::kWorker, name);
    protocol::RegisterAgent agent;
    agent.node = name;
    agent.host_identity = StrCat("host", node);
    agent.cpus = kWorkersOfNode;
    agent.memory_bytes = 64ull << 30;
    agent.agent_incarnation = 1;
    Tell(kAgent0 + node, agent);
    for (std::uint32_t i = 0; i < kWorkersOfNode; ++i) {
      const PeerId peer = kWorker0 + node * kWorkersOfNode + i;
      scheduler_.Join(peer, Role::kWorker, name);
      protocol::RegisterWorker hello;
      hello.node = name;
      hello.index = i;
      hello.agent_incarnation = 1;
      hello.worker_incarnation = peer;
      hello.pid = static_cast<std::int64_t>(peer);
      hello.host_identity = agent.host_identity;
      hello.capacity = {1000, 0, 4ull << 30};
      Tell(peer, hello);
    }
  }
  void ApplyTeams() {
    std::string teams;
    for (std::uint32_t team = 0; team < kTeams; ++team) {
      teams += StrCat(team == 0 ? "" : ",", "\"team", team, "\":{\"weight_millis\":", 1000 + team,
                      ",\"guaranteed\":{\"cpu_percent\":1},\"most\":{\"jobs\":100000}}");
    }
    Tell(1, protocol::ApplyTeams{StrCat("{\"default\":{},\"teams\":{", teams, "}}"), "", ""});
  }
  void Submit(std::uint32_t number, bool stream) {
    protocol::SubmitJob submit;
    submit.submission_key = StrCat(stream ? "s" : "j", number);
    submit.kind = stream ? "stream" : "noop";
    submit.root.op = stream ? "stream.plan" : "root";
    Tell(kUser0 + number % (kTeams * kUsersOfTeam), submit);
  }
  /// Every trainer has its own node's workers, and those of all nodes by the network.
  void Attach(StreamState& stream, PeerId peer) {
    protocol::AttachTrainer attach;
    attach.stream = stream.job;
    attach.trainer_incarnation = peer;
    attach.endpoint.host_identity = StrCat("host", stream.node);
    attach.endpoint.remote_address = "tls://192.0.2.1:1/1";
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      attach.slots.push_back(
          {slot, ++stream.generations[slot], protocol::SlotState::kFree, 0, 0, {}});
    }
    const PeerId user = kUser0 + (peer - kTrainer0) % (kTeams * kUsersOfTeam);
    scheduler_.Join(peer, Role::kSubmitter, StrCat("user", user - kUser0),
                    StrCat("team", (user - kUser0) % kTeams));
    Tell(peer, attach);
  }
  /// Peers answer until the time is over or nothing is left.
  void Run(double seconds) {
    const double end = NowMs() + 1000 * seconds;
    while (!inbox_.empty() && (answers_ % kTimed != 0 || NowMs() < end)) {
      SendAction send = std::move(inbox_.front());
      inbox_.pop_front();
      Answer(std::move(send));
      ++answers_;
      const std::int64_t passed_ms = worked_us_ / (1000 * kScaleCores);
      worked_us_ -= passed_ms * 1000 * kScaleCores;
      now_ += passed_ms;
      if (now_ - ticked_ < 100) continue;
      ticked_ = now_;
      if (now_ - beaten_ >= 500) Beat();
      const double begun = NowMs();
      scheduler_.Tick(now_);
      ticks.ms.push_back(static_cast<float>(NowMs() - begun));
    }
  }
  void TickOnce() {
    now_ += 100;
    Beat();
    scheduler_.Tick(now_);
    Run(1);
  }
  /// One turn in kTimed is timed: reading the clock takes as long as a short one.
  void Tell(PeerId peer, Body body, Turns* into = nullptr) {
    if (into == nullptr && ++told_ % kTimed != 0)
      return scheduler_.Tell(peer, std::move(body), 7, now_);
    const double begun = NowMs();
    scheduler_.Tell(peer, std::move(body), 7, now_);
    (into == nullptr ? turns : *into).ms.push_back(static_cast<float>(NowMs() - begun));
  }
  Core& core() { return scheduler_.core(); }

  Turns turns, ticks;
  std::uint64_t tasks = 0, shards = 0;
  bool hold_work = false;   ///< workers keep what they get
  bool hold_noops = false;  ///< but for the roots of jobs

 private:
  /// Agents alone: the workers that send none are as alive as these.
  void Beat() {
    beaten_ = now_;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      Tell(kAgent0 + node, protocol::Heartbeat{});
    }
    for (const auto& [job, at] : by_job_) Tell(kTrainer0 + at, protocol::Heartbeat{});
  }
  void Answer(SendAction&& send) {
    if (const auto* granted = std::get_if<protocol::LeasesGranted>(&send.body)) {
      Finish(send.peer, *granted);
    }
  }
  void Finish(PeerId worker, const protocol::LeasesGranted& granted) {
    tasks += granted.tasks.size();
    shards += granted.shards.size();
    if (hold_work) return;
    protocol::TasksFinished finished;
    std::vector<JobId> planned;
    for (const protocol::TaskLease& lease : granted.tasks) {
      if (hold_noops && lease.op == "noop") continue;
      auto& item = finished.items.emplace_back();
      item.lease = lease.lease;
      item.task = lease.task;
      item.cost.cpu_us = kWorkUs;
      if (lease.op == "root") {
        protocol::TaskSpec spec;
        spec.op = "noop";
        spec.resources = {1000, 0, 0};
        item.spawned.assign(kTasksOfJob, spec);
      } else if (lease.op == "stream.plan") {
        item.result = kScalePlan;
        planned.push_back(lease.task.job);
      }
    }
    worked_us_ +=
        kWorkUs * static_cast<std::int64_t>(finished.items.size() + granted.shards.size());
    if (!finished.items.empty()) Tell(worker, std::move(finished));
    for (const JobId job : planned) {
      const auto number = static_cast<std::uint32_t>(streams.size());
      by_job_[job] = number;
      streams.push_back({job, number % nodes_, {}, {}});
      Attach(streams.back(), kTrainer0 + number);
    }
    if (granted.shards.empty()) return;
    protocol::ShardsReturned returned;
    for (const protocol::ShardLease& lease : granted.shards) {
      auto& item = returned.items.emplace_back();
      item.lease = lease.lease;
      item.stream = lease.stream;
      item.shard = lease.shard;
      item.cost.cpu_us = kWorkUs;
    }
    Tell(worker, std::move(returned));
    for (const protocol::ShardLease& lease : granted.shards) Count(lease);
  }
  void Count(const protocol::ShardLease& lease) {
    const std::uint32_t number = by_job_.at(lease.stream);
    StreamState& stream = streams[number];
    Tell(kTrainer0 + number,
         protocol::ShardsCounted{lease.stream, 0, {{lease.lease, lease.shard}}});
    if (++stream.counted[lease.shard.batch] != kShardsOfBatch) return;
    stream.counted.erase(lease.shard.batch);
    protocol::AnnounceSlots announce;
    announce.stream = lease.stream;
    announce.slots.push_back({lease.grant.slot,
                              ++stream.generations[lease.grant.slot],
                              protocol::SlotState::kFree,
                              0,
                              0,
                              {}});
    Tell(kTrainer0 + number, announce);
  }

  InProcessScheduler scheduler_;
  const std::uint32_t nodes_;
  std::deque<SendAction> inbox_;
  TimeMs now_ = 1'000, ticked_ = 0, beaten_ = 0;
  std::int64_t worked_us_ = 0;
  std::uint64_t answers_ = 0, told_ = 0;

 public:
  std::deque<StreamState> streams;

 private:
  std::map<JobId, std::uint32_t> by_job_;
};

void Run(std::uint32_t nodes, std::uint32_t streams, std::uint32_t jobs, double seconds) {
  Site site(nodes);
  site.Start();
  for (std::uint32_t node = 0; node < nodes; ++node) site.Register(node);
  site.ApplyTeams();
  site.turns.Print("register");
  for (std::uint32_t i = 0; i < streams; ++i) site.Submit(i, true);
  site.Run(seconds / 4);
  site.turns.Print("plan and attach");
  site.tasks = site.shards = 0;
  double begun = NowMs();
  site.Run(seconds / 2);
  std::printf("streams alone                %.0f shard grants/s\n",
              static_cast<double>(site.shards) / (NowMs() - begun) * 1000);
  site.turns.Print("streams alone");
  site.ticks.Print("ticks");
  for (std::uint32_t i = 0; i < jobs; ++i) site.Submit(i, false);
  site.turns.Print("submit");
  site.tasks = site.shards = 0;
  begun = NowMs();
  site.Run(seconds);
  std::printf("streams and jobs             %.0f task grants/s, %.0f shard grants/s\n",
              static_cast<double>(site.tasks) / (NowMs() - begun) * 1000,
              static_cast<double>(site.shards) / (NowMs() - begun) * 1000);
  site.turns.Print("streams and jobs");
  site.ticks.Print("ticks");
  site.hold_work = true;  // all workers are busy now, and jobs wait
  site.Run(seconds);
  const std::uint32_t more = std::min(jobs, 200u);
  for (std::uint32_t i = 0; i < more; ++i) site.Submit(jobs + i, false);
  site.turns.Print("submit, all workers busy");
  Turns why, list;
  for (std::uint32_t i = 0; i < more; ++i) {
    site.Tell(1, protocol::ExplainJob{streams + jobs + more - i}, &why);
  }
  for (int i = 0; i < 20; ++i) site.Tell(1, protocol::DescribeJobs{{}, 0}, &list);
  why.Print("why");
  list.Print("jobs, 200 rows");
  std::printf("memory                       %.0f MiB\n", ResidentMib());
}

/// From the journal of open tasks to the first grant of the next scheduler.
void Restart(std::uint32_t jobs) {
  Site site(1);
  site.Start();
  site.Register(0);
  site.hold_noops = true;
  for (std::uint32_t i = 0; i < jobs; ++i) site.Submit(i, false);
  site.Run(600);
  const std::string snapshot = site.core().EncodeSnapshot();
  const std::uint64_t sequence = site.core().last_sequence();
  double begun = NowMs();
  {
    Core core;
    if (!core.LoadSnapshot(sequence, snapshot).ok()) std::abort();
    std::printf("snapshot of %u tasks, %.0f MiB  read in %.0f ms\n", jobs * (kTasksOfJob + 1),
                static_cast<double>(snapshot.size()) / (1 << 20), NowMs() - begun);
  }
  site.tasks = 0;
  site.hold_work = true;
  begun = NowMs();
  site.Start();
  site.Register(0);
  while (site.tasks == 0) site.TickOnce();
  std::printf("restart from all records     first grant after %.0f ms of work\n", NowMs() - begun);
}

}  // namespace
}  // namespace patchbay::scheduler

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto number = [&](int at, double otherwise) {
    return argc > at ? std::strtod(argv[at], nullptr) : otherwise;
  };
  patchbay::scheduler::Run(static_cast<std::uint32_t>(number(1, 1'000)),
                           static_cast<std::uint32_t>(number(2, 200)),
                           static_cast<std::uint32_t>(number(3, 10'000)), number(4, 8));
  patchbay::scheduler::Restart(10'000);
}

#include "tests/sim/why_site.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "runtime/format/json/described.h"

namespace patchbay::sim {
namespace {

using scheduler::PeerId;
using scheduler::Role;
using scheduler::SendAction;

constexpr PeerId kSiteOperator = 1, kSiteAgent0 = 10, kSiteWorker0 = 100, kSiteUser0 = 5'000,
                 kSiteTrainer0 = 10'000;
constexpr std::uint64_t kMib = 1ull << 20;
constexpr std::uint32_t kSiteSlots = 3, kWorkersOfNode = 10;

const char* NameOfClass(Numerics numerics) {
  return numerics == Numerics::kCuda ? "cuda" : numerics == Numerics::kCpu ? "cpu" : "strict";
}

}  // namespace

Site::Site(std::uint64_t seed)
    : dice_(seed),
      rules_of_all_(Dice(seed + (1ull << 41)).Chance(0.5)),
      scheduler_({}, [this](SendAction&& send) { inbox_.push_back(std::move(send)); }) {
  if (!scheduler_.Start(now_).ok()) broken_ = "the scheduler does not start";
  for (std::size_t u = 0; u < 3; ++u) {
    users_.push_back({StrCat("team", u / 2), StrCat("user", u), kSiteUser0 + u});
  }
  const std::uint64_t nodes = 1 + dice_.Below(3);
  for (std::uint64_t n = 0; n < nodes; ++n) {
    SiteNode& node = nodes_.emplace_back();
    node.name = StrCat("node", n);
    node.peer = kSiteAgent0 + n;
    const std::uint64_t workers = 1 + dice_.Below(3);
    std::uint64_t memory = 0;
    for (std::uint64_t w = 0; w < workers; ++w) {
      SiteWorker& worker = node.workers.emplace_back();
      worker.peer = kSiteWorker0 + n * kWorkersOfNode + w;
      worker.capacity = {1000, dice_.Chance(0.3) ? 1u : 0u,
                         (dice_.Chance(0.5) ? 512 : 2048) * kMib};
      if (worker.capacity.gpus != 0 && dice_.Chance(0.5)) worker.numerics = Numerics::kCuda;
      memory = std::max(memory, worker.capacity.memory_bytes);
      node.capacity.gpus += worker.capacity.gpus;
    }
    node.capacity.cpu_millis = static_cast<std::uint32_t>(1000 * workers);
    node.capacity.memory_bytes = memory * (dice_.Chance(0.5) ? 1 : workers);
  }
  Restart();
  for (SiteNode& node : nodes_) Answer(node.name);
}

void Site::Restart() {
  inbox_.clear();
  if (incarnation_ != 0 && !scheduler_.Start(now_).ok()) broken_ = "the scheduler does not restart";
  scheduler_.Join(kSiteOperator, Role::kOperator, "ops");
  for (const User& user : users_)
    scheduler_.Join(user.peer, Role::kSubmitter, user.name, user.team);
  for (SiteNode& node : nodes_) {
    scheduler_.Join(node.peer, Role::kWorker, node.name);
    for (SiteWorker& worker : node.workers) {
      scheduler_.Join(worker.peer, Role::kWorker, node.name);
      worker.tasks.clear();
      worker.shards.clear();
    }
    if (!node.silent) Register(node);
  }
  for (auto& [id, job] : jobs_) {
    if (std::exchange(job.attached, false) && dice_.Chance(0.6)) AttachTrainer(id);
  }
}

void Site::Register(SiteNode& node) {
  if (node.incarnation == 0) node.incarnation = ++incarnation_;
  protocol::RegisterAgent agent;
  agent.node = node.name;
  agent.host_identity = StrCat("host-", node.name);
  agent.cpus = node.capacity.cpu_millis / 1000;
  agent.memory_bytes = node.capacity.memory_bytes;
  agent.gpus.resize(node.capacity.gpus);
  agent.agent_incarnation = node.incarnation;
  Tell(node.peer, agent);
  for (std::uint32_t i = 0; i < node.workers.size(); ++i) RegisterWorker(node, i);
}

void Site::RegisterWorker(SiteNode& node, std::uint32_t index) {
  SiteWorker& worker = node.workers[index];
  if (worker.incarnation == 0) {
    worker.incarnation = ++incarnation_;
    worker.tasks.clear();
    worker.shards.clear();
  }
  protocol::RegisterWorker hello;
  hello.node = node.name;
  hello.index = index;
  hello.agent_incarnation = node.incarnation;
  hello.worker_incarnation = worker.incarnation;
  hello.pid = static_cast<std::int64_t>(worker.incarnation);
  hello.host_identity = StrCat("host-", node.name);
  hello.capacity = worker.capacity;
  hello.numerics = worker.numerics;
  for (const auto& [number, lease] : worker.tasks)
    hello.held.push_back({number, false, lease.task, 0, {}});
  for (const auto& [number, lease] : worker.shards) {
    hello.held.push_back({number, true, {}, lease.stream, lease.shard});
  }
  Tell(worker.peer, hello);
}

void Site::Step() {
  Pass(100 * dice_.Between(1, 8));
  switch (dice_.Below(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return Submit();
    case 6: {
      SiteNode* const node = SomeNode();
      const auto change =
          dice_.Chance(0.5) ? protocol::NodeChange::kDrain : protocol::NodeChange::kResume;
      return Change(protocol::ChangeNode{node->name, change, ""});
    }
    case 7:
      SomeNode()->silent = true;
      return;
    case 8:
    case 9:
      return Answer(SomeNode()->name);
    case 10:
    case 11:
      return Change(protocol::ChangeJob{SomeJob(), dice_.Chance(0.5)
                                                       ? protocol::JobChange::kHold
                                                       : protocol::JobChange::kRelease});
    case 12:
      return Change(protocol::ChangeJob{SomeJob(), protocol::JobChange::kPriority,
                                        static_cast<std::int32_t>(dice_.Below(5))});
    case 13:
      return DrawPolicy();
    case 14:
      return dice_.Chance(0.3) ? Restart() : void();
    case 15:
      return dice_.Chance(0.5) ? Crash() : void();
    case 16:
    case 17:
      return AttachTrainer(SomeJob());
    default:
      return FinishOne();
  }
}

void Site::Submit() {
  if (jobs_.size() >= 24) return FinishOne();
  SiteJob job;
  job.user = dice_.Below(users_.size());
  job.is_stream = dice_.Chance(0.3);
  job.host = dice_.Below(nodes_.size());
  job.numerics = dice_.Chance(0.6)   ? Numerics::kCpu
                 : dice_.Chance(0.5) ? Numerics::kCuda
                                     : Numerics::kStrict;
  protocol::SubmitJob submit;
  submit.submission_key = StrCat(++submissions_);
  submit.kind = job.is_stream ? "stream" : "batch";
  submit.name = StrCat("secret", submissions_);
  submit.priority = -static_cast<std::int32_t>(dice_.Below(3));
  submit.waits = true;
  submit.root.op = job.is_stream ? "stream.plan" : "root";
  if (!job.is_stream) {
    static constexpr std::uint64_t kNeeds[] = {0, 0, 200, 400, 1500, 9000};
    submit.root.resources = {1000,
                             dice_.Chance(0.2) ? 1 + static_cast<std::uint32_t>(dice_.Below(2)) : 0,
                             kNeeds[dice_.Below(6)] * kMib};
  }
  submitted_ = 0;
  Tell(users_[job.user].peer, submit);
  if (submitted_ == 0) return;  // refused: its team may have nothing
  job.id = submitted_;
  jobs_[job.id] = job;
}

void Site::DrawPolicy() {
  const auto cap = [&]() -> std::optional<std::uint32_t> {
    if (dice_.Chance(0.5)) return {};
    return static_cast<std::uint32_t>(1000 * (1 + dice_.Below(3)));
  };
  policy_ = {};
  policy_.lend_max_ms = dice_.Chance(0.4) ? 0 : 1'000;
  for (const User& user : users_) {
    model::TeamRules& rules = policy_.teams[user.team];
    rules.weight_millis = static_cast<std::uint32_t>(dice_.Between(500, 3000));
    rules.most.cpu_millis = cap();
    rules.users[user.name].most.cpu_millis = cap();
    if (dice_.Chance(0.3)) rules.most.streams = static_cast<std::uint32_t>(dice_.Between(1, 2));
  }
  if (rules_of_all_) DrawMoreRules();
  ApplyPolicy();
}

/// Rules of GPUs, memory and lending, in a half of the runs: the others draw as before.
void Site::DrawMoreRules() {
  for (auto& [team, rules] : policy_.teams) {
    if (dice_.Chance(0.5)) rules.most.gpus = static_cast<std::uint32_t>(dice_.Between(1, 2));
    if (dice_.Chance(0.3)) rules.most.memory_bytes = 256 * kMib * dice_.Between(1, 8);
    if (rules.most.gpus && dice_.Chance(0.5)) rules.guaranteed.gpus = 1;
    for (auto& [name, user] : rules.users) {
      if (dice_.Chance(0.3)) user.most.gpus = 1;
    }
    if (dice_.Chance(0.5)) continue;
    rules.guaranteed.cpu_millis = 1000;
    rules.lend_percent = static_cast<std::uint32_t>(50 * dice_.Below(2));
  }
}

void Site::ApplyPolicy() { Change(protocol::ApplyTeams{DumpJson(JsonOf(policy_)), "", ""}); }

void Site::FinishOne() {
  std::vector<std::pair<SiteWorker*, LeaseNumber>> all;
  for (SiteNode& node : nodes_) {
    if (node.silent) continue;
    for (SiteWorker& worker : node.workers) {
      // The first of each kind runs.
      if (!worker.tasks.empty()) all.push_back({&worker, worker.tasks.begin()->first});
      if (!worker.shards.empty()) all.push_back({&worker, worker.shards.begin()->first});
    }
  }
  if (all.empty()) return;
  const auto [worker, number] = all[dice_.Below(all.size())];
  if (const auto task = worker->tasks.find(number); task != worker->tasks.end()) {
    return FinishTask(*worker, TaskLease(task->second), dice_.Chance(0.2));
  }
  FinishShard(*worker, ShardLease(worker->shards.at(number)));
}

void Site::FinishTask(SiteWorker& worker, const TaskLease& lease, bool fails) {
  worker.tasks.erase(lease.lease);
  protocol::TasksFinished finished;
  protocol::TasksFinished::Item& item = finished.items.emplace_back();
  item.lease = lease.lease;
  item.task = lease.task;
  item.cost.cpu_us = 50'000;
  if (fails) item.outcome = {static_cast<std::int32_t>(absl::StatusCode::kUnavailable), "later"};
  const SiteJob& job = jobs_.at(lease.task.job);
  if (!fails && job.is_stream) {
    item.result = StrCat(
        R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":1048576,"global_batch":4,)"
        R"("tail":"keep","world_size":1,"shard_patches":2,"numerics":")",
        NameOfClass(job.numerics), "\"}}");
  }
  if (!fails && lease.op == "root") {
    for (std::uint64_t i = 0, n = dice_.Below(4); i < n; ++i) {
      protocol::TaskSpec& part = item.spawned.emplace_back();
      part.op = "part";
      part.resources = {1000, 0, dice_.Below(3) * 200 * kMib};
      if (i != 0 && dice_.Chance(0.4)) part.depends_on = {protocol::kSpawnedBase};
    }
  }
  Tell(worker.peer, finished);
}

void Site::FinishShard(SiteWorker& worker, const ShardLease& lease) {
  worker.shards.erase(lease.lease);
  protocol::ShardsReturned returned;
  protocol::ShardsReturned::Item& item = returned.items.emplace_back();
  item.lease = lease.lease;
  item.stream = lease.stream;
  item.shard = lease.shard;
  item.cost.cpu_us = 20'000;
  Tell(worker.peer, returned);
  SiteJob& job = jobs_.at(lease.stream);
  if (!job.attached) return;
  Tell(kSiteTrainer0 + job.id, protocol::ShardsCounted{job.id, 0, {{item.lease, item.shard}}});
  if (dice_.Chance(0.5)) return;
  protocol::AnnounceSlots announce;  // its batch may not be whole: it is given up
  announce.stream = job.id;
  announce.slots.push_back({lease.grant.slot,
                            ++job.generations[lease.grant.slot],
                            protocol::SlotState::kFree,
                            0,
                            0,
                            {}});
  Tell(kSiteTrainer0 + job.id, announce);
}

void Site::Crash() {
  SiteNode* const node = SomeNode();
  if (node->silent) return;
  const auto index = static_cast<std::uint32_t>(dice_.Below(node->workers.size()));
  SiteWorker& worker = node->workers[index];
  const std::uint64_t ended = std::exchange(worker.incarnation, 0);
  Tell(node->peer, protocol::WorkerExited{node->name, index, ended, SIGSEGV});
  RegisterWorker(*node, index);
}

void Site::Beat(const SiteNode& node) {
  Tell(node.peer, protocol::Heartbeat{});
  for (const SiteWorker& worker : node.workers) {
    Tell(worker.peer, protocol::Heartbeat{});
    protocol::RenewLeases renew;
    for (const auto& [number, lease] : worker.tasks) renew.items.push_back({number, ++request_});
    for (const auto& [number, lease] : worker.shards) renew.items.push_back({number, ++request_});
    if (!renew.items.empty()) Tell(worker.peer, renew);
  }
}

void Site::Pass(TimeMs ms) {
  for (const TimeMs end = now_ + ms; now_ < end;) {
    now_ += 100;
    if (now_ % 500 == 0) {
      for (std::size_t n = 0; n < nodes_.size(); ++n) {
        if (!nodes_[n].silent) Beat(nodes_[n]);
      }
      for (const auto& [id, job] : jobs_) {
        if (job.attached) Tell(kSiteTrainer0 + id, protocol::Heartbeat{});
      }
    }
    scheduler_.Tick(now_);
    Deliver();
  }
}

void Site::Answer(const std::string& name) {
  for (SiteNode& node : nodes_) {
    if (node.name != name) continue;
    node.silent = false;
    Register(node);
    Beat(node);
  }
}

void Site::ComeBack() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) Answer(nodes_[n].name);
  Pass(3'500);
}

void Site::AttachTrainer(JobId id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !found->second.is_stream || found->second.attached) return;
  SiteJob& job = found->second;
  const User& user = users_[job.user];
  scheduler_.Join(kSiteTrainer0 + id, Role::kSubmitter, user.name, user.team);
  protocol::AttachTrainer attach;
  attach.stream = id;
  attach.trainer_incarnation = job.trainer_incarnation = ++incarnation_;
  attach.endpoint.host_identity = StrCat("host-", nodes_[job.host].name);
  for (std::uint32_t slot = 0; slot < kSiteSlots; ++slot) {
    attach.slots.push_back(
        {slot, job.generations[slot] += 1, protocol::SlotState::kFree, 0, 0, {}});
  }
  job.attached = true;
  Tell(kSiteTrainer0 + id, attach);
}

void Site::AddNode(std::size_t host, Numerics numerics) {
  const std::size_t number = nodes_.size();
  SiteNode& node = nodes_.emplace_back();
  node.name = StrCat("more", number);
  node.peer = kSiteAgent0 + number;
  node.capacity = {64'000, 8, 1ull << 40};
  SiteWorker& worker = node.workers.emplace_back();
  worker.peer = kSiteWorker0 + number * kWorkersOfNode;
  worker.capacity = node.capacity;
  worker.numerics = numerics;
  scheduler_.Join(node.peer, Role::kWorker, node.name);
  scheduler_.Join(worker.peer, Role::kWorker, node.name);
  node.incarnation = ++incarnation_;
  protocol::RegisterAgent agent;
  agent.node = node.name;
  agent.host_identity = StrCat("host-", nodes_[host].name);
  agent.cpus = 64;
  agent.memory_bytes = node.capacity.memory_bytes;
  agent.gpus.resize(8);
  agent.agent_incarnation = node.incarnation;
  Tell(node.peer, agent);
  RegisterWorker(node, 0);
}

bool Site::FinishPlanning() {
  for (SiteNode& node : nodes_) {
    for (SiteWorker& worker : node.workers) {
      for (const auto& [number, lease] : worker.tasks) {
        if (!lease.planning) continue;
        FinishTask(worker, TaskLease(lease), false);
        return true;
      }
    }
  }
  return false;
}

void Site::End(JobId job) { Change(protocol::CancelJob{job}); }

void Site::Change(const Body& body) { Tell(kSiteOperator, body); }

void Site::Tell(PeerId peer, Body body) {
  scheduler_.Tell(peer, std::move(body), ++request_, now_);
  Deliver();
}

/// In the order in which messages were sent: answers to them wait for the others.
void Site::Deliver() {
  if (std::exchange(delivers_, true)) return;
  while (!inbox_.empty()) {
    const SendAction send = std::move(inbox_.front());
    inbox_.pop_front();
    Deliver(send);
  }
  delivers_ = false;
}

void Site::Deliver(const SendAction& send) {
  if (const auto* submitted = std::get_if<protocol::JobSubmitted>(&send.body)) {
    submitted_ = submitted->job;
  } else if (const auto* explained = std::get_if<protocol::JobExplained>(&send.body)) {
    explained_ = *explained;
  } else if (const auto* described = std::get_if<protocol::JobsDescribed>(&send.body)) {
    row_ = described->jobs.front();
  } else if (const auto* failed = std::get_if<protocol::StreamFailed>(&send.body)) {
    jobs_.at(failed->stream).attached = false;
    ++failures_;
  } else if (std::holds_alternative<protocol::RequestFailed>(send.body)) {
    if (send.peer >= kSiteTrainer0) jobs_.at(send.peer - kSiteTrainer0).attached = false;
  } else if (const auto* fence = std::get_if<protocol::FenceShard>(&send.body)) {
    Fence(*fence);
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    SiteNode& node = nodes_[n];
    const auto* const kill = std::get_if<protocol::KillWorker>(&send.body);
    if (send.peer == node.peer && kill != nullptr) {
      ++kills_;
      if (!node.silent) Kill(node, *kill);
    }
    for (SiteWorker& worker : node.workers) {
      if (send.peer != worker.peer) continue;
      if (const auto* granted = std::get_if<LeasesGranted>(&send.body)) Take(*granted, worker);
      if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&send.body)) {
        Drop(*revoked, worker);
      }
    }
  }
}

void Site::Fence(const protocol::FenceShard& fence) {
  SiteJob& job = jobs_.at(fence.stream);
  const std::uint32_t slot = fence.grant.slot;
  protocol::ShardFenced fenced;
  fenced.stream = fence.stream;
  fenced.lease = fence.lease;
  fenced.shard = fence.shard;
  fenced.row = {slot,
                job.generations[slot],
                protocol::SlotState::kFilling,
                fence.shard.epoch,
                fence.shard.batch,
                {}};
  if (job.attached) Tell(kSiteTrainer0 + job.id, fenced);
}

void Site::Kill(SiteNode& node, const protocol::KillWorker& kill) {
  Tell(node.peer, protocol::WorkerExited{node.name, kill.index, kill.worker_incarnation, SIGKILL});
  SiteWorker& worker = node.workers[kill.index];
  if (worker.incarnation != kill.worker_incarnation) return;
  worker.incarnation = 0;
  RegisterWorker(node, kill.index);
}

void Site::Drop(const protocol::LeasesRevoked& revoked, SiteWorker& worker) {
  protocol::ShardsReturned returned;
  for (const LeaseNumber& number : revoked.leases) {
    worker.tasks.erase(number);
    const auto shard = worker.shards.find(number);
    if (shard == worker.shards.end()) continue;
    auto& item = returned.items.emplace_back();
    item.lease = number;
    item.stream = shard->second.stream;
    item.shard = shard->second.shard;
    item.outcome = {static_cast<std::int32_t>(absl::StatusCode::kCancelled), "revoked"};
    worker.shards.erase(shard);
  }
  if (!returned.items.empty()) Tell(worker.peer, returned);
}

void Site::Take(const LeasesGranted& granted, SiteWorker& worker) {
  for (const TaskLease& lease : granted.tasks) {
    worker.tasks[lease.lease] = lease;
    ++given_[lease.task.job];
  }
  for (const ShardLease& lease : granted.shards) {
    worker.shards[lease.lease] = lease;
    ++given_[lease.stream];
  }
}

protocol::JobExplained Site::Why(JobId job, PeerId peer) {
  explained_.reset();
  Tell(peer, protocol::ExplainJob{job});
  if (!explained_.has_value()) broken_ = StrCat("why ", job, " has no answer");
  return explained_.value_or(protocol::JobExplained{});
}

protocol::JobRow Site::Row(JobId job) {
  row_.reset();
  Tell(kSiteOperator, protocol::DescribeJobs{{job}, 0});
  return row_.value_or(protocol::JobRow{});
}

void Site::Print() {
  for (const auto& [id, job] : jobs_) {
    const protocol::JobRow row = Row(id);
    std::fprintf(stderr, "  job %d %s team %s state %d runs %d %s%s%s\n", static_cast<int>(id),
                 job.is_stream ? "stream" : "batch", row.team.c_str(), static_cast<int>(row.state),
                 static_cast<int>(row.tasks_running), row.cause.c_str(), Holds(id) ? " held" : "",
                 job.attached ? " attached" : "");
  }
  for (const SiteNode& node : nodes_) {
    for (const SiteWorker& worker : node.workers) {
      std::string text;
      for (const auto& [number, lease] : worker.tasks) {
        text += StrCat(lease.planning ? " plans " : " task ", lease.task.job);
      }
      for (const auto& [number, lease] : worker.shards) text += StrCat(" shard ", lease.stream);
      std::fprintf(stderr, "  %s%s%s %s\n", node.name.c_str(), node.silent ? " silent" : "",
                   worker.numerics == Numerics::kCuda ? " cuda" : "", text.c_str());
    }
  }
}

std::uint64_t Site::Given(JobId job) const {
  const auto given = given_.find(job);
  return given == given_.end() ? 0 : given->second;
}

bool Site::Holds(JobId job) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const SiteNode& node) {
    return std::any_of(node.workers.begin(), node.workers.end(), [&](const SiteWorker& worker) {
      return std::any_of(worker.tasks.begin(), worker.tasks.end(),
                         [&](const auto& entry) { return entry.second.task.job == job; }) ||
             std::any_of(worker.shards.begin(), worker.shards.end(),
                         [&](const auto& entry) { return entry.second.stream == job; });
    });
  });
}

SiteNode* Site::SomeNode() { return &nodes_[dice_.Below(nodes_.size())]; }

JobId Site::SomeJob() {
  if (jobs_.empty()) return 0;
  auto it = jobs_.begin();
  std::advance(it, dice_.Below(jobs_.size()));
  return it->first;
}

}  // namespace patchbay::sim

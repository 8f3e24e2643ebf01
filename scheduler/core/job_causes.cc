#include "scheduler/core/job_causes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/policy/team_texts.h"

namespace patchbay::scheduler {
namespace {

using Cause = JobCauses::Cause;

constexpr std::size_t kMaxHoldersNamed = 8;
constexpr std::int64_t kLongTaskUs = std::numeric_limits<std::int64_t>::max();

std::string Seconds(TimeMs ms) { return StrCat((std::max<TimeMs>(ms, 0) + 999) / 1000, " s"); }

}  // namespace

/// Workers that could run it, and the reason that none of them may be given leases.
template <typename Can>
JobCauses::Able JobCauses::Look(const Can& can) const {
  Able able;
  for (const Worker& worker : worker_table_.workers()) {
    if (worker.state == WorkerState::kGone || worker.state == WorkerState::kCondemned) continue;
    able.any_worker = true;
    if (!can(worker)) continue;
    able.any = true;
    if (worker_table_.CanLease(worker)) {
      able.may_lease = true;
      return able;
    }
    const Node& node = worker_table_.NodeOf(worker);
    if (worker_table_.IsSuspect(worker) || worker.peer == 0 || node.agent == 0) {
      able.silent = &node;
    } else if (node.drained || node.draining) {
      able.drained = &node;
    }
  }
  return able;
}

JobCauses::Found JobCauses::OfAble(const Able& able) {
  if (!able.any_worker) {
    return Cause{"no_node", "no node has a worker", "when one joins: patchbay join"};
  }
  if (!able.any || able.may_lease) return std::nullopt;
  if (able.drained != nullptr) {
    const std::string& name = able.drained->name;
    return Cause{"drained", StrCat("node ", name, " is drained"),
                 able.drained->drained ? StrCat("when it is resumed: patchbay node resume ", name)
                                       : "when another node joins: it is stopping"};
  }
  if (able.silent != nullptr) {
    return Cause{"suspect", StrCat("node ", able.silent->name, " does not answer"),
                 "when it answers, or another node joins"};
  }
  return Cause{"no_node", "its workers are ending or have just begun", "when they have begun"};
}

JobCauses::Found JobCauses::OfHold(const Job& job) const {
  if (!job.on_hold) return std::nullopt;
  return Cause{"held", "it is on hold", StrCat("when it is released: patchbay release ", job.id)};
}

JobCauses::Found JobCauses::OfPlace(const Job& job) const {
  const model::TeamRules* const rules = table_.teams().policy.Find(job.team);
  if (!job.waits_for_place || rules == nullptr) return std::nullopt;
  const std::string team = ShownTeam(job.team);
  const std::string key = StrCat(KeyOfTeam(team), ".most.streams");
  return Cause{"cap_team",
               StrCat("team ", team, " has as many streams as it may, with at most ",
                      rules->most.streams.value_or(0), " ranks"),
               StrCat("when one of them ends, or with more as ", key)};
}

Status JobCauses::CheckNeed(const Resources& need) const {
  Resources most{0, 0, 0};
  bool any = false;
  for (const auto& [name, node] : worker_table_.nodes()) {
    if (!node.registered) continue;
    any = true;
    const bool fits = std::any_of(node.workers.begin(), node.workers.end(), [&](const auto& one) {
      return Fits(need, worker_table_.at(one.second).capacity);
    });
    // A worker that is not up yet may be larger.
    const bool whole = !node.workers.empty() && node.workers.size() >= node.cpus;
    if (Fits(need, node.capacity) && (fits || !whole)) return absl::OkStatus();
    for (const auto& [index, id] : node.workers) {
      most = Largest(most, worker_table_.at(id).capacity);
    }
  }
  if (!any || !recovery_.AwaitedNodes().empty()) return absl::OkStatus();
  return FailedPrecondition("submit job: it needs ", NeedText(need),
                            ", more than a worker of any node has (", NeedText(most),
                            " at most): add a node that has as much");
}

/// Workers whose lane is empty and that could take it.
std::vector<Worker*> JobCauses::WithRoom(const Resources& need, bool planning) {
  std::vector<Worker*> found;
  for (const auto& [load, id] :
       planning ? worker_table_.open_for_planning() : worker_table_.open_for_tasks()) {
    if (load != 0) break;
    Worker& worker = worker_table_.at(id);
    if (batch_.HasRoom(worker, need, planning)) found.push_back(&worker);
  }
  return found;
}

/// Work for which these workers have room, and which a rule keeps from all of them.
JobCauses::Found JobCauses::OfRules(const Job& job, const Resources& need,
                                    const std::vector<Worker*>& workers) const {
  std::optional<FairShare::Refusal> rule;
  for (const Worker* worker : workers) {
    rule = worker->holders.Forbids(job.account, need, fair_);
    if (!rule.has_value()) return std::nullopt;
  }
  if (!rule.has_value()) return std::nullopt;
  const char* const noun = ResourceNoun(rule->resource);
  const std::string most = StrCat(AmountText(rule->resource, rule->most), " ", noun);
  if (rule->by == FairShare::Refusal::By::kNotLent) {
    return Cause{"share", StrCat("another team does not lend ", most),
                 "when work of others ends, or that team lends more"};
  }
  const std::string team = fair_.TeamOf(job.account);
  const bool of_user = rule->by == FairShare::Refusal::By::kUserCap;
  return Cause{of_user ? "cap_user" : "cap_team",
               StrCat(of_user ? "key " : "team ", of_user ? job.submitter : team, " has ",
                      AmountText(rule->resource, rule->held), " of at most ", most),
               StrCat("when work of it ends, or with more as ", KeyOfTeam(team),
                      of_user ? StrCat(".users.", job.submitter) : "", ".most.",
                      ResourceKey(rule->resource))};
}

JobCauses::Cause JobCauses::Reclaimed(const Job& job) {
  return {"guarantee_reclaimed",
          StrCat("other teams want their share, and ", job.tasks_returned,
                 " long tasks were handed back to them after reclaim_after"),
          "when its team has less than its share, or no other has had work for a minute"};
}

/// The worker that it could have runs work alone, or is kept empty for it.
JobCauses::Found JobCauses::OfReserved() const {
  return Cause{"suspect", "a worker is kept for work that ended another one and runs alone",
               "when that work has begun and ended"};
}

/// Work for which these workers have room: the reason that its account does not get it. Nothing
/// where it would start at once.
JobCauses::Found JobCauses::OfShare(const Job& job, const Resources& need,
                                    const std::vector<Worker*>& workers) {
  if (Found found = OfRules(job, need, workers); found.has_value()) return found;
  for (const Worker* worker : workers) {
    if (!worker->holders.Admits(job.account, need, fair_)) continue;
    const std::uint32_t more_millis = worker->holders.MoreForTasks(job.account, need);
    if (fair_.MayStart(job.account, kLongTaskUs, more_millis)) return std::nullopt;
  }
  if (job.tasks_returned != 0) return Reclaimed(job);
  return Cause{"share",
               "other teams want the free cores within seconds, and its next task takes longer than"
               " lend_max",
               "when its team has less than its share, or no other has had work for a minute"};
}

/// Work that waits for other work to end.
JobCauses::Found JobCauses::OfOrder(const Job& job) {
  if (job.tasks_returned != 0) return Reclaimed(job);
  const auto& held = shares_.Held();
  if (held.size() == held.count(job.id)) return OfReserved();
  const std::string held_by = in_words_ ? HeldBy(job) : "";
  if (!HasOwnBefore(job)) {
    return Cause{"share", held_by, "when work of theirs ends, once others had as much by weight"};
  }
  return Cause{"priority", held_by,
               StrCat("when work before it ends; patchbay priority ", job.id, " N, with N above ",
                      job.priority, ", puts it before your jobs of ", job.priority)};
}

/// Sums of thousands of jobs: found once a count, and then asked for by account.
const std::map<AccountId, JobCauses::Holding>& JobCauses::Holdings() {
  const auto& held = shares_.Held();
  if (std::exchange(summed_at_, shares_.counts()) == shares_.counts()) return holdings_;
  holdings_.clear();
  for (const auto& [id, part] : held) {
    const Job* const holder = table_.Find(id);
    if (holder == nullptr) continue;
    const JobRank rank{holder->priority, holder->id};
    const auto [found, fresh] = holdings_.emplace(holder->account, Holding{rank, 0, {}});
    Holding& holding = found->second;
    if (!fresh && rank < holding.first) holding.first = rank;
    holding.millis += part.millis;
    if (holding.jobs.size() <= kMaxHoldersNamed) holding.jobs.emplace_back(id, part.millis);
  }
  return holdings_;
}

/// Whether a job of the same user that goes before it has cores.
bool JobCauses::HasOwnBefore(const Job& job) {
  const auto own = Holdings().find(job.account);
  return own != holdings_.end() && own->second.first < JobRank{job.priority, job.id};
}

/// Tasks that could run on workers that are up.
JobCauses::Found JobCauses::OfRoom(const Job& job, const Resources& need, bool planning) {
  if (const auto workers = WithRoom(need, planning); !workers.empty()) {
    return planning ? std::nullopt : OfShare(job, need, workers);
  }
  Worker* const kept = worker_table_.Reserved();
  if (kept != nullptr && kept->LaneOf(planning).tasks == 0 && (planning || kept->shards.empty()) &&
      batch_.HasRoom(*kept, need, planning)) {
    return OfReserved();
  }
  if (!WithRoom({need.cpu_millis, need.gpus, 0}, planning).empty()) {
    const std::string bytes = MebibytesText(need.memory_bytes);
    return Cause{"memory", StrCat("other work has the memory: it needs ", bytes),
                 StrCat("when ", bytes, " of a worker and its node are free")};
  }
  if (need.gpus != 0 && !WithRoom({need.cpu_millis, 0, 0}, planning).empty()) {
    return Cause{"gpus", StrCat("other work has the GPUs: it needs ", need.gpus),
                 StrCat("when ", need.gpus, " GPUs of a node are free")};
  }
  if (planning) {
    const auto& workers = worker_table_.workers();
    const auto busy = std::count_if(workers.begin(), workers.end(),
                                    [](const Worker& worker) { return worker.IsPlanning(); });
    const bool idle = std::any_of(workers.begin(), workers.end(), [&](const Worker& worker) {
      return worker_table_.MayTakeMore(worker.id) && !worker.IsPlanning();
    });
    if (idle) {
      return Cause{"memory", "other work has the memory that planning needs",
                   StrCat("when ", MebibytesText(std::max(need.memory_bytes, kPlanningBytes)),
                          " of a worker and its node are free")};
    }
    if (busy == 0) return OfReserved();
    return Cause{"planning", StrCat(busy, " workers plan, one stream each"),
                 "when one of them has planned"};
  }
  return OfOrder(job);
}

JobCauses::Found JobCauses::OfNeed(const Job& job, const Resources& need, bool planning) {
  const Able able = Look([&](const Worker& worker) { return Fits(need, worker.capacity); });
  if (Found found = OfAble(able); found.has_value()) return found;
  if (able.any) return OfRoom(job, need, planning);
  Resources most{0, 0, 0};
  for (const Worker& worker : worker_table_.workers()) most = Largest(most, worker.capacity);
  const std::string starts = "when a node with a worker that has it joins";
  if (need.gpus > most.gpus) {
    return Cause{"gpus", StrCat("it needs ", need.gpus, " GPUs, a worker has ", most.gpus), starts};
  }
  if (need.memory_bytes > most.memory_bytes) {
    return Cause{"memory",
                 StrCat("it needs ", MebibytesText(need.memory_bytes), ", a worker has ",
                        MebibytesText(most.memory_bytes)),
                 starts};
  }
  return Cause{"no_node", StrCat("no worker has ", NeedText(need), " together"), starts};
}

/// A job none of whose tasks runs.
JobCauses::Found JobCauses::OfTasks(const Job& job) {
  const BatchDispatch::Waiting waits = batch_.WaitingOf(job);
  if (waits.need.has_value()) return OfNeed(job, *waits.need, waits.planning);
  if (waits.suspect.has_value()) {
    Found found = OfNeed(job, *waits.suspect, waits.planning);
    constexpr std::string_view kBusy[] = {"priority", "planning", "share", "cap_team", "cap_user"};
    const bool busy = !found.has_value() ||
                      std::find(std::begin(kBusy), std::end(kBusy), found->code) != std::end(kBusy);
    if (!busy) return found;
    return Cause{"suspect", "a worker ended while it ran a task of the job, which runs alone now",
                 "when a worker has nothing else to do"};
  }
  if (waits.retry_at != 0) {
    return Cause{"backoff",
                 StrCat("an attempt failed; the next is in ", Seconds(waits.retry_at - event_.now)),
                 StrCat("in ", Seconds(waits.retry_at - event_.now))};
  }
  if (!barrier_.IsOpen() || recovery_.HoldsBack()) {
    return Cause{"recovery",
                 "the scheduler has restarted, and workers of before may have its tasks",
                 "when they are back, or in 3 s"};
  }
  return Cause{"dependency", "its next tasks wait for others of the job", "when these have ended"};
}

/// Shards of a trainer that wait, with nothing of the stream being made.
JobCauses::Found JobCauses::OfShards(const Job& job, const Stream& stream, const Trainer& trainer) {
  if (!trainer.holders.empty()) {
    return Cause{"recovery", StrCat(recovery_.NameHolder(trainer), " has its ring mapped"),
                 "when that process registers or ends"};
  }
  if (!trainer.unknown.empty()) {
    return Cause{"recovery", "shards of before the restart may still arrive",
                 "when its trainer has fenced them"};
  }
  const auto reaches = [&](const Worker& worker) {
    return worker_table_.IsLocal(worker, trainer.endpoint) ||
           !trainer.endpoint.remote_address.empty();
  };
  const Able made = Look([&](const Worker& worker) { return MakesItsBytes(worker, stream); });
  if (made.any_worker && !made.any) {
    return Cause{
        "numerics",
        StrCat("no worker makes ", NameOf(stream.numerics), " patches with the code of its plan"),
        StrCat("when a node joins that does: patchbay join, with numerics ",
               NameOf(stream.numerics))};
  }
  const Able able =
      Look([&](const Worker& worker) { return MakesItsBytes(worker, stream) && reaches(worker); });
  if (Found found = OfAble(able); found.has_value()) return found;
  if (!able.any) {
    return Cause{"no_node", "the workers are on other nodes than the trainer",
                 "when a node of the trainer's machine joins, or the trainer has --data-listen"};
  }
  const Able willing =
      Look([&](const Worker& worker) { return dispatch_.Suits(worker, stream, trainer); });
  if (!willing.any) {
    return Cause{"backoff", "no worker could deliver to its trainer", "at the next attempt, soon"};
  }
  const auto& first = *trainer.pending.begin();
  if (trainer.filling.at(first.first).shards[first.second].suspect) {
    return Cause{"suspect", "a worker ended while it made this shard, which is made alone now",
                 "when a worker has nothing else to do"};
  }
  std::vector<Worker*> workers;
  const auto add = [&](WorkerId id) {
    Worker& worker = worker_table_.at(id);
    if (dispatch_.Suits(worker, stream, trainer)) workers.push_back(&worker);
  };
  for (const OpenWorkers& open : worker_table_.open_for_shards()) {
    for (const auto& [shards, id] : open) add(id);
  }
  for (const WorkerId id : worker_table_.kept()) {
    const Worker& worker = worker_table_.at(id);
    if (worker_table_.MayTakeMore(id) && worker.shards.size() < worker.shard_pace.Depth()) add(id);
  }
  Worker* const kept = worker_table_.Reserved();
  const bool is_kept = kept != nullptr && kept->work.tasks == 0 && kept->shards.empty();
  if (workers.empty() && is_kept && dispatch_.Suits(*kept, stream, trainer)) return OfReserved();
  if (workers.empty()) return OfOrder(job);
  if (Found found = OfRules(job, ShardNeed(*workers.front()), workers); found.has_value()) {
    return found;
  }
  return dispatch_.StartsAtTick(stream, trainer, workers) ? std::nullopt : OfOrder(job);
}

JobCauses::Found JobCauses::OfStream(const Job& job, const Stream& stream) {
  if (stream.leases != 0) return std::nullopt;
  const Trainer* waits = nullptr;
  bool attached = false;
  for (const auto& [rank, trainer] : stream.trainers) {
    if (trainer.state != TrainerState::kAttached) continue;
    attached = true;
    const bool wants = !trainer.pending.empty() || !trainer.unknown.empty() ||
                       (!trainer.holders.empty() && !trainer.free.empty());
    if (waits == nullptr && wants) waits = &trainer;
  }
  if (waits != nullptr) return OfShards(job, stream, *waits);
  if (attached) return std::nullopt;  // its rings are full
  return Cause{"trainer_absent", "no trainer is attached", "when one attaches"};
}

JobCauses::Found JobCauses::Of(const Job& job) {
  if (IsEnded(job.state)) return std::nullopt;
  if (Found found = OfHold(job); found.has_value()) return found;
  if (Found found = OfPlace(job); found.has_value()) return found;
  if (const Stream* stream = streams_.Find(job.id); stream != nullptr) {
    return OfStream(job, *stream);
  }
  return job.tasks_running != 0 ? std::nullopt : OfTasks(job);
}

/// Cores that the user's own jobs hold, by number, and those of others, in sum by team; empty when
/// nobody holds any.
std::string JobCauses::HeldBy(const Job& job) {
  std::uint64_t others = 0;
  std::map<std::string, std::uint64_t> teams;
  std::vector<std::string> own;
  const std::string own_team = ShownTeam(job.team);
  for (const auto& [account, holding] : Holdings()) {
    if (account == kNoAccount) continue;  // never given a lease that costs
    const std::string& team = fair_.TeamOf(account);
    if (team != own_team) {
      teams[team] += holding.millis;
    } else if (account != job.account) {
      others += holding.millis;
    }
    for (const auto& [id, millis] : holding.jobs) {
      if (account != job.account || id == job.id || own.size() == kMaxHoldersNamed) continue;
      own.push_back(StrCat(id, " (", CoresText(millis), ")"));
    }
  }
  std::sort(own.begin(), own.end());
  std::vector<std::string> texts;
  if (!own.empty()) texts.push_back(StrCat("cores of your jobs ", StrJoin(own, ", ")));
  if (others != 0) texts.push_back(StrCat(CoresText(others), " cores of other users"));
  for (const auto& [team, millis] : teams) {
    texts.push_back(StrCat(CoresText(millis), " cores of team ", team));
  }
  return StrJoin(texts, ", ");
}

std::string_view JobCauses::CodeOf(const Job& job) {
  in_words_ = false;
  const Found cause = Of(job);
  in_words_ = true;
  return cause.has_value() ? cause->code : "";
}

protocol::JobExplained JobCauses::Explain(const Job& job) {
  shares_.LookAgain();
  protocol::JobExplained explained;
  const Found cause = Of(job);
  if (!cause.has_value()) return explained;
  explained.cause = cause->code;
  const BatchDispatch::Waiting waits = batch_.WaitingOf(job);
  if (waits.need.has_value()) explained.facts.push_back({"needs", NeedText(*waits.need)});
  explained.facts.push_back({"held by", cause->held_by});
  explained.facts.push_back({"starts", cause->starts});
  if (fair_.IsScaled()) {
    explained.facts.push_back(
        {"guarantees", "are more than the cores that are up: each is scaled down in proportion"});
  }
  return explained;
}

}  // namespace patchbay::scheduler

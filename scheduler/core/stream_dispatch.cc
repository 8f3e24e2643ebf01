#include "scheduler/core/stream_dispatch.h"

#include <algorithm>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "scheduler/policy/affinity.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

/// Workers kept for ready tasks at a time. Larger: more cores change hands at a time; smaller: a
/// turn with thousands of idle workers and ready tasks takes less time.
constexpr std::size_t kMostKept = 1'024;
/// Workers that streams look at in vain between two ticks, and one when others have used these up.
/// Larger: of thousands of workers, the few that can make a stream's shards are found sooner;
/// smaller: a turn takes less time.
constexpr std::size_t kMostShardLooks = 2'048, kFewestShardLooks = 32;

bool OfClass(Numerics worker, Numerics stream) {
  return stream == Numerics::kStrict || worker == stream;
}

/// Whether a process exists that may make shards, now or later.
bool IsThere(const Worker& worker) {
  return worker.state == WorkerState::kUp || worker.state == WorkerState::kCondemned;
}

/// The node starts workers of that class.
bool Offers(const Node& node, Numerics numerics) {
  return (numerics != Numerics::kCpu && !node.gpus.empty()) ||
         (numerics != Numerics::kCuda && node.cpus != 0);
}

std::string KindOf(Numerics numerics) {
  if (numerics == Numerics::kStrict) return "worker";
  return numerics == Numerics::kCuda ? "GPU worker" : "CPU worker";
}

}  // namespace

bool MakesItsBytes(const Worker& worker, const Stream& stream) {
  return OfClass(worker.numerics, stream.numerics) && worker.byte_versions == stream.byte_versions;
}

void StreamDispatch::Dispatch() {
  const bool all = streams_.all_changed();
  for (const JobId job : streams_.TakeChanged()) order_.Refresh(job, streams_.Find(job));
  if (all) {
    looks_left_ = kMostShardLooks;
    order_.ForgetRefusals();
  }
  ReleaseKept(all);
  if (order_.empty()) return;
  for (std::size_t i = 0; i < worker_table_.freed().size(); ++i) {  // it grows
    Worker& worker = worker_table_.at(worker_table_.freed()[i]);
    if (worker.reserved) order_.ForgetRefusals();  // a suspect waits for it
    while (worker_table_.IsOpenForShards(worker.id) && ServeFreed(worker)) continue;
  }
  while (ServeAll()) continue;
}

/// Workers that were kept for tasks and gave back a shard since, or for more tasks than there are,
/// are looked at again.
void StreamDispatch::ReleaseKept(bool all) {
  while (worker_table_.kept().size() > (all ? 0 : batch_.ready())) {
    worker_table_.Unkeep(worker_table_.at(*worker_table_.kept().rbegin()));
  }
  if (worker_table_.kept().empty()) return;
  const std::vector<WorkerId> freed = worker_table_.freed();
  for (const WorkerId id : freed) {
    if (worker_table_.IsKept(id)) worker_table_.Unkeep(worker_table_.at(id));
  }
}

/// Leases a shard to the worker, or to one that suits that shard better; false when there is none
/// for it.
bool StreamDispatch::ServeFreed(Worker& worker) {
  Tried tried = Tried::kNone;
  order_.AnyInOrder([&](WantingStream& wanting) {
    tried = DispatchOne(wanting, wanting.refused ? &worker : nullptr);
    return tried != Tried::kNone;
  });
  return tried == Tried::kGranted;
}

/// Leases the first shard in the order for which any worker is open; false when there is none. A
/// stream that wants shards alone has one after the other.
bool StreamDispatch::ServeAll() {
  return order_.AnyInOrder([&](WantingStream& wanting) {
    if (wanting.refused) return false;
    const JobId job = wanting.stream->job;
    if (!AnyMayBeOpen(*wanting.stream)) {
      wanting.refused = wanting.blocked = true;
      return false;
    }
    if (DispatchOne(wanting, nullptr) != Tried::kGranted) return false;
    while (order_.IsAlone(job) && AnyMayBeOpen(*wanting.stream) &&
           DispatchOne(wanting, nullptr) == Tried::kGranted) {
      continue;
    }
    return true;
  });
}

/// Whether a shard of it waits, and there is a worker for it as far as a glance tells: with many
/// streams most have none. A suspect may have a worker kept for it.
bool StreamDispatch::AnyMayBeOpen(const Stream& stream) const {
  const auto& open = worker_table_.open_for_shards();
  const bool anywhere = !open[0].empty() || !open[1].empty();
  const auto near = [&](const auto& entry) {
    const IdSet& ids = entry.second->ids;
    return std::any_of(std::begin(open), std::end(open), [&](const OpenWorkers& workers) {
      return workers.lower_bound({0, 0}, ids) != workers.end();
    });
  };
  return std::any_of(stream.trainers.begin(), stream.trainers.end(), [&](const auto& entry) {
    const Trainer& trainer = entry.second;
    const PendingShard* const next = NextPending(trainer);
    if (next == nullptr) return false;
    if (trainer.filling.at(next->first).shards[next->second].suspect) return true;
    if (!anywhere || !trainer.endpoint.remote_address.empty()) return anywhere;
    const auto* here = worker_table_.NodesOnHost(trainer.endpoint.host_identity);
    return here != nullptr && std::any_of(here->begin(), here->end(), near);
  });
}

/// The lowest shard to make whose slot the trainer has for it; null when there is none.
const PendingShard* StreamDispatch::NextPending(const Trainer& trainer) const {
  for (const PendingShard& next : trainer.pending) {
    if (!trainer.slots.at(trainer.filling.at(next.first).slot).rests) return &next;
  }
  return nullptr;
}

StreamDispatch::Tried StreamDispatch::DispatchOne(WantingStream& wanting, Worker* only) {
  Stream& stream = *wanting.stream;
  absl::InlinedVector<std::pair<const PendingShard*, Trainer*>, 4> waiting;
  for (auto& [rank, trainer] : stream.trainers) {
    // While a shard is unknown, the trainer may still report that a batch is in another slot; so
    // may its next attach, when a batch was taken under a former scheduler's lease.
    if (trainer.state != TrainerState::kAttached || !trainer.unknown.empty() || trainer.behind ||
        (only != nullptr && !Joins(*only, trainer))) {
      continue;
    }
    const PendingShard* const next = NextPending(trainer);
    if (next != nullptr && recovery_.AllowsGrants(trainer)) waiting.emplace_back(next, &trainer);
  }
  if (waiting.size() > 1) {
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const auto& a, const auto& b) { return *a.first < *b.first; });
  }
  bool solo = false;  // a suspect waits for workers that others free
  for (const auto& [next, trainer] : waiting) {
    const auto [at, index] = *next;
    const Shard& shard = trainer->filling.at(at).shards[index];
    solo = solo || shard.suspect;
    Worker* worker = only;
    if (only == nullptr) {
      worker = PickWorker(wanting, *trainer, shard);
    } else if (!CouldMake(*only, stream, *trainer, shard.suspect)) {
      continue;
    } else if (!shard.suspect && IsWithheld(*only, stream.account)) {
      return Tried::kWithheld;
    }
    if (worker == nullptr) continue;
    const ShardId id{at.epoch, at.batch, trainer->rank, index};
    const bool any = shard.suspect || stream.images.empty();
    Worker& maker = any ? *worker : Prefer(stream, *trainer, id, *worker);
    shards_.Grant(stream, *trainer, id, maker);
    order_.Refresh(stream.job, &stream);
    return Tried::kGranted;
  }
  if (only != nullptr) return Tried::kNone;
  wanting.refused = !solo;
  wanting.blocked = waiting.empty();
  wanting.capped = !fair_.MayHoldAny(wanting.account);
  return Tried::kNone;
}

/// A ring takes so many processes, and a worker that has begun stays.
bool StreamDispatch::Joins(const Worker& worker, const Trainer& trainer) {
  return trainer.makers.size() < kMaxRingHolders || trainer.makers.Has(worker.id);
}

/// Whether the worker could not deliver to the trainer lately. If no other worker can make the
/// shards now, it is tried again soon: both may have been cut off together.
bool StreamDispatch::IsKeptApart(const Worker& worker, const Stream& stream,
                                 const Trainer& trainer) const {
  const RankId rank{stream.job, trainer.rank};
  const auto bar = worker.barred.find(rank);
  if (bar == worker.barred.end()) return false;
  if (event_.now < bar->second - options_.bar_ms + options_.resend_ms) return true;
  return std::any_of(
      worker_table_.workers().begin(), worker_table_.workers().end(), [&](const Worker& other) {
        return other.barred.count(rank) == 0 && worker_table_.CanLease(other) &&
               !other.RunsSuspect() && !other.reserved && MakesItsBytes(other, stream) &&
               (worker_table_.IsLocal(other, trainer.endpoint) ||
                !trainer.endpoint.remote_address.empty());
      });
}

bool StreamDispatch::Suits(const Worker& worker, const Stream& stream,
                           const Trainer& trainer) const {
  const bool reaches =
      worker_table_.IsLocal(worker, trainer.endpoint) || !trainer.endpoint.remote_address.empty();
  return Joins(worker, trainer) && MakesItsBytes(worker, stream) && reaches &&
         !IsKeptApart(worker, stream, trainer);
}

bool StreamDispatch::CouldMake(Worker& worker, const Stream& stream, const Trainer& trainer,
                               bool solo) {
  if (solo && (!worker.tasks.empty() || !worker.shards.empty())) return false;
  const Resources need = ShardNeed(worker);
  return (solo || worker.holders.Admits(stream.account, need, fair_)) &&
         Suits(worker, stream, trainer) && worker_table_.NodeHasRoom(worker, need);
}

bool StreamDispatch::MayMake(Worker& worker, const Stream& stream, const Trainer& trainer,
                             bool solo) {
  return CouldMake(worker, stream, trainer, solo) && (solo || !IsWithheld(worker, stream.account));
}

/// Whether the worker runs a task of an account that is behind, or is about to be given one.
/// Streams go in the order of their accounts: one that is kept from a stream is kept from those
/// after it.
bool StreamDispatch::IsWithheld(Worker& worker, AccountId account) {
  if (worker_table_.IsKept(worker.id) || RunsTaskBehind(worker, account)) return true;
  if (worker_table_.kept().size() >= MostKept() || !batch_.IsWanted(worker, account)) return false;
  worker_table_.Keep(worker);
  return true;
}

bool StreamDispatch::RunsTaskBehind(const Worker& worker, AccountId account) const {
  const auto& holders = worker.holders.entries();
  return std::any_of(holders.begin(), holders.end(), [&](const Holders::Entry& entry) {
    return entry.tasks != 0 && entry.account != account && fair_.IsBehind(entry.account, account);
  });
}

std::size_t StreamDispatch::MostKept() const {
  return std::min<std::uint64_t>(batch_.ready(), kMostKept);
}

bool StreamDispatch::StartsAtTick(const Stream& stream, const Trainer& trainer,
                                  const std::vector<Worker*>& workers) {
  std::size_t wanted = 0, looks = 0;
  for (Worker* const worker : workers) {
    if (++looks > kMostKept || !CouldMake(*worker, stream, trainer, false) ||
        RunsTaskBehind(*worker, stream.account)) {
      continue;
    }
    if (!batch_.IsWanted(*worker, stream.account)) return true;
    ++wanted;
  }
  return wanted > MostKept();
}

/// The first worker for which `may` is true, from where the last look ended; null when there is
/// none, or the look goes on at another time. A full ring takes no other process.
template <typename May>
Worker* StreamDispatch::PickRemote(WantingStream& wanting, const Trainer& trainer,
                                   std::size_t numerics, const May& may) {
  const OpenWorkers& open = worker_table_.open_for_shards()[numerics];
  const bool full = trainer.makers.size() >= kMaxRingHolders;
  const OpenWorkers::value_type from = std::exchange(wanting.looked_to[numerics], {}), none{};
  std::size_t left = std::max(looks_left_, kFewestShardLooks);
  bool over = from == none;  // nothing is before it
  for (OpenWorkers::value_type at = from;;) {
    const auto next = full ? open.lower_bound(at, trainer.makers) : open.lower_bound(at);
    if (next == open.end() && !std::exchange(over, true)) {
      at = none;
      continue;
    }
    if (next == open.end() || (over && from != none && !(*next < from))) return nullptr;
    at = {next->first, next->second + 1};
    Worker& worker = worker_table_.at(next->second);
    if (may(worker)) return &worker;
    looks_left_ -= looks_left_ == 0 ? 0 : 1;
    if (--left != 0) continue;
    wanting.looked_to[numerics] = at;
    return nullptr;
  }
}

/// The least loaded worker that may make the trainer's next shard, on its own host if possible. A
/// suspect gets an empty worker, or waits for one that is soon empty. Where all plan, which may
/// take minutes, it runs beside planning, until a worker has ended so.
Worker* StreamDispatch::PickWorker(WantingStream& wanting, const Trainer& trainer,
                                   const Shard& shard) {
  const Stream& stream = *wanting.stream;
  const bool solo = shard.suspect;
  Worker* const reserved = solo ? worker_table_.Reserved() : nullptr;
  if (reserved != nullptr && MayMake(*reserved, stream, trainer, true)) return reserved;
  Worker* spare = nullptr;
  const auto may = [&](Worker& worker) {
    if (MayMake(worker, stream, trainer, solo)) return true;
    const bool sooner = spare == nullptr || (spare->IsPlanning() && !worker.IsPlanning());
    if (solo && sooner && MayMake(worker, stream, trainer, false)) spare = &worker;
    return false;
  };
  const auto* here = worker_table_.NodesOnHost(trainer.endpoint.host_identity);
  if (here != nullptr) {
    for (const auto& [name, node] : *here) {
      for (const OpenWorkers& open : worker_table_.open_for_shards()) {
        OpenWorkers::value_type at{0, 0};
        for (auto next = open.lower_bound(at, node->ids); next != open.end();
             next = open.lower_bound(at, node->ids)) {
          at = {next->first, next->second + 1};
          Worker& worker = worker_table_.at(next->second);
          if (may(worker)) return &worker;
        }
      }
    }
  }
  if (!trainer.endpoint.remote_address.empty()) {
    for (const std::size_t numerics : {0, 1}) {
      if (Worker* worker = PickRemote(wanting, trainer, numerics, may)) return worker;
    }
  }
  const bool may_wait = reserved != nullptr && Suits(*reserved, stream, trainer);
  const bool is_soonest =
      spare == nullptr || spare->IsPlanning() || (may_wait && !reserved->IsPlanning());
  Worker* const awaited = may_wait && is_soonest ? reserved : spare;
  if (awaited == nullptr) return nullptr;
  const bool beside = !shard.needs_empty_worker;
  const bool only_plans =
      awaited->IsPlanning() && awaited->work.tasks == 0 && awaited->shards.empty();
  if (only_plans && beside && MayMake(*awaited, stream, trainer, false)) return awaited;
  worker_table_.Reserve(*awaited, ShardNeed(*awaited),
                        beside ? WorkerTable::SuspectPlace::kBesidePlanning
                               : WorkerTable::SuspectPlace::kEmptyWorker);
  return nullptr;
}

Worker& StreamDispatch::Prefer(Stream& stream, const Trainer& trainer, const ShardId& id,
                               Worker& least) {
  const PatchRun run = ShardRun(stream.geometry, id.batch, id.rank, id.shard);
  const std::optional<std::uint64_t> image = stream.images.ImageOf(run.first_ordinal);
  if (!image.has_value()) return least;
  const auto [maker, fresh] = stream.makers.emplace(*image, least.id);
  if (fresh) {
    stream.makers_order.push_back(*image);
    if (stream.makers_order.size() <= kMaxMakersKnown) return least;
    stream.makers.erase(stream.makers_order.front());
    stream.makers_order.pop_front();
    return least;
  }
  Worker& warm = worker_table_.at(maker->second);
  const bool may = warm.id != least.id && worker_table_.IsOpenForShards(warm.id) &&
                   worker_table_.IsLocal(warm, trainer.endpoint) ==
                       worker_table_.IsLocal(least, trainer.endpoint) &&
                   MayMake(warm, stream, trainer, false) && StaysEvenWith(warm, trainer);
  if (!may) maker->second = least.id;
  return may ? warm : least;
}

/// Whether enough shards wait for the workers that hold fewer than this one.
bool StreamDispatch::StaysEvenWith(const Worker& worker, const Trainer& trainer) const {
  const auto load = static_cast<std::uint32_t>(worker.shards.size());
  const std::size_t waiting = trainer.pending.size();
  std::vector<std::uint32_t> smaller;
  for (const auto& open : worker_table_.open_for_shards()) {
    for (const auto& [held, id] : open) {
      if (held >= load || smaller.size() >= waiting) break;
      smaller.push_back(held);
    }
  }
  return StaysEven(load, smaller, waiting);
}

/// A trainer waits for shards, and no worker that `counts` is of the stream's class and can reach
/// it.
template <typename Counts>
bool StreamDispatch::IsStarved(const Stream& stream, const Counts& counts) const {
  const auto could = [&](const Trainer& trainer) {
    return std::any_of(worker_table_.workers().begin(), worker_table_.workers().end(),
                       [&](const Worker& worker) {
                         return counts(worker) && MakesItsBytes(worker, stream) &&
                                (worker_table_.IsLocal(worker, trainer.endpoint) ||
                                 !trainer.endpoint.remote_address.empty());
                       });
  };
  return std::any_of(stream.trainers.begin(), stream.trainers.end(), [&](const auto& entry) {
    const Trainer& trainer = entry.second;
    return trainer.state == TrainerState::kAttached && !trainer.pending.empty() && !could(trainer);
  });
}

/// The nodes are known, and none of them starts workers of the stream's class.
bool StreamDispatch::NoNodeOffers(const Stream& stream) const {
  if (recovery_.IsFromBefore(stream.job) && !recovery_.IsOver())
    return false;  // nodes may still be coming back
  bool any_node = false;
  for (const auto& [name, node] : worker_table_.nodes()) {
    if (!node.registered) continue;
    if (Offers(node, stream.numerics)) return false;
    any_node = true;
  }
  return any_node;
}

/// The name of a node that starts workers of the stream's class and does not answer, if any.
const std::string* StreamDispatch::SilentNode(const Stream& stream) const {
  for (const auto& [name, node] : worker_table_.nodes()) {
    const bool silent =
        node.agent_incarnation != 0 && event_.now - node.last_seen >= options_.suspect_ms;
    if (silent && Offers(node, stream.numerics)) return &name;
  }
  return nullptr;
}

/// The cause of a starved stream, where its user can do something about it.
Status StreamDispatch::WhyStarved(const Stream& stream) const {
  const std::string kind = KindOf(stream.numerics);
  const auto fits = [&](const Worker& worker) {
    return IsThere(worker) && MakesItsBytes(worker, stream);
  };
  if (std::any_of(worker_table_.workers().begin(), worker_table_.workers().end(), fits)) {
    return Unavailable("make shards: the ", kind,
                       "s are on other nodes than the trainer, which takes nothing from",
                       " them: name the address to listen on with --data-listen");
  }
  const auto other_code = [&](const Worker& worker) {
    return IsThere(worker) && OfClass(worker.numerics, stream.numerics);
  };
  if (std::any_of(worker_table_.workers().begin(), worker_table_.workers().end(), other_code)) {
    return FailedPrecondition("make shards: the plan is of code of versions ", stream.byte_versions,
                              ", and no ", kind, " has the same: its bytes would differ");
  }
  if (const std::string* silent = SilentNode(stream); silent != nullptr) {
    const TimeMs since = worker_table_.nodes().at(*silent).last_seen;
    return Unavailable("make shards: no ", kind, " is left: node ", *silent,
                       " has not answered for ", (event_.now - since) / 1000, " s");
  }
  if (!recovery_.lost_nodes().empty()) {
    return Unavailable("make shards: no ", kind, " is left: node ", *recovery_.lost_nodes().begin(),
                       " has not come back since the scheduler started");
  }
  if (NoNodeOffers(stream)) {
    return FailedPrecondition("make shards: numerics ", NameOf(stream.numerics),
                              ": the cluster has no ", kind,
                              "; patchbay doctor says on its nodes what they offer and lack");
  }
  return Unavailable("make shards: no ", kind, " has been running for ",
                     (event_.now - stream.starved_since) / 1000, " s; the nodes' logs say why");
}

std::string StreamDispatch::WaitsFor(const Stream& stream) const {
  if (stream.on_hold) return StrCat("its release: patchbay release ", stream.job);
  for (const auto& [rank, trainer] : stream.trainers) {
    if (trainer.state != TrainerState::kAttached || trainer.holders.empty()) continue;
    return StrCat(recovery_.NameHolder(trainer), ", which has rank ", rank,
                  "'s memory mapped: it may write there until it registers or ends");
  }
  const auto answers = [&](const Worker& worker) {
    return IsThere(worker) && !worker_table_.IsSuspect(worker);
  };
  if (!IsStarved(stream, answers)) return "";
  const std::string kind = KindOf(stream.numerics);
  if (const auto awaited = recovery_.AwaitedNodes(); !awaited.empty()) {
    return StrCat("a ", kind, ": node ", *awaited.begin(),
                  " is not back since the scheduler started");
  }
  if (const std::string* silent = SilentNode(stream); silent != nullptr) {
    return StrCat("a ", kind, ": node ", *silent, " does not answer");
  }
  return StrCat("a ", kind, IsStarved(stream, IsThere) ? ": none is running" : ": none answers");
}

std::optional<Status> StreamDispatch::TickStarved(Stream& stream) {
  if (stream.on_hold || !IsStarved(stream, IsThere) || !recovery_.AwaitedNodes().empty()) {
    stream.starved_since = 0;
    return std::nullopt;
  }
  if (stream.starved_since == 0) stream.starved_since = event_.now;
  const TimeMs grace = NoNodeOffers(stream) ? options_.suspect_ms : options_.no_worker_ms;
  if (event_.now - stream.starved_since < grace) return std::nullopt;
  return WhyStarved(stream);
}

}  // namespace patchbay::scheduler

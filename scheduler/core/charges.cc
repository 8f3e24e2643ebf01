#include "scheduler/core/charges.h"

#include <algorithm>
#include <utility>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

constexpr TimeMs kWriteMs = 1'000;
/// Leases are timed by the events of this process, costs by the worker.
constexpr TimeMs kTimingSlackMs = 100;

}  // namespace

protocol::WorkCost Charges::Bounded(Worker& worker, const Ended& lease,
                                    const protocol::WorkCost& cost) {
  const bool is_former = lease.scheduler < barrier_.table().incarnation();
  const TimeMs ms = is_former ? kMostFormerLeaseMs : event_.now - lease.granted_at;
  const std::int64_t us = (ms + kTimingSlackMs) * 1'000;
  const std::int64_t threads = worker.capacity.cpu_millis / 1'000 + kExtraThreads;
  const protocol::WorkCost bounded{std::clamp<std::int64_t>(cost.cpu_us, 0, us * threads),
                                   std::clamp<std::int64_t>(cost.gpu_us, 0, us),
                                   std::min(cost.bytes_read, kMostLeaseBytes),
                                   std::min(cost.bytes_delivered, kMostLeaseBytes)};
  if (bounded != cost && lease.job != 0 && !std::exchange(worker.cost_clipped, true)) {
    logs_.Add(lease.job, StrCat("node ", worker.node, " worker ", worker.index,
                                " reports costs that its leases have no time for: they are cut"));
  }
  return bounded;
}

void Charges::Report(Worker& worker, Lease* lease, const LeaseNumber& number,
                     const protocol::WorkCost& cost) {
  // Nothing was done yet, or was reported before.
  if (cost == protocol::WorkCost{}) return;
  if (lease != nullptr) {
    if (lease->cost) return;
    lease->cost = Bounded(worker, lease, cost);
    return Share(lease->is_shard ? lease->stream : lease->task.job, *lease->cost);
  }
  const auto late = late_.find(worker.id);
  if (late == late_.end()) return;
  const auto ended = late->second.find(number);
  if (ended == late->second.end()) return;
  const protocol::WorkCost bounded = Bounded(worker, ended->second, cost);
  Share(ended->second.job, bounded, ended->second.charged_us);
  Charge(ended->second.job, bounded, ended->second.counted);
  late->second.erase(ended);
}

void Charges::End(const Lease& lease, const Worker& worker, bool counted) {
  Ended ended(lease);
  if (lease.cost) return Charge(ended.job, *lease.cost, counted);
  if (worker.state == WorkerState::kGone || worker.incarnation != ended.worker) return;
  auto& late = late_[worker.id];
  if (!late.empty() && late.begin()->second.worker != ended.worker) late.clear();
  ended.counted = counted;
  late.emplace(lease.number, ended);
  if (late.size() > kMaxLateCosts) late.erase(late.begin());
}

void Charges::Forget(WorkerId worker, const LeaseNumber& number) {
  const auto late = late_.find(worker);
  if (late != late_.end()) late->second.erase(number);
}

void Charges::Share(JobId job, const protocol::WorkCost& cost, std::int64_t charged_us) {
  Job* const found = barrier_.table().Find(job);
  if (found == nullptr) return;
  const WorkKind kind = found->IsStream() ? WorkKind::kShards : WorkKind::kTasks;
  fair_.Charge(AccountOf(fair_, *found), cost.cpu_us - charged_us, kind);
}

void Charges::Charge(JobId job, const protocol::WorkCost& cost, bool counted) {
  const Job* const found = barrier_.table().Find(job);
  if (found == nullptr || cost == protocol::WorkCost{}) return;
  const auto [unwritten, fresh] = unwritten_.try_emplace(job);
  scheduler::Charge& charge = unwritten->second;
  if (fresh) charge.payer = PayerOf(*found);
  Add(counted ? charge.usage.counted : charge.usage.wasted, cost);
}

void Charges::Write() {
  written_at_ = event_.now;
  if (unwritten_.empty()) return;
  UsageRecord record;
  for (auto& [job, charge] : unwritten_) record.charges.push_back(std::move(charge));
  unwritten_.clear();
  barrier_.Emit(std::move(record));
}

void Charges::Tick() {
  if (event_.now - written_at_ >= kWriteMs) Write();
}

void Charges::On(const Request& request, protocol::FetchUsage&& message) {
  Write();
  const PeerIdentity& identity = *request.identity;
  const bool teams = barrier_.table().teams().at != 0;
  const auto may_see = [&](const Payer& payer) {
    return identity.role == Role::kOperator || payer.user == identity.key_name ||
           (teams && payer.team == identity.team);
  };
  protocol::UsageFetched fetched{{}, true};
  const auto& rows = barrier_.table().usage().rows();
  for (auto row = rows.lower_bound({message.since / 3'600 * 3'600, {}}); row != rows.end(); ++row) {
    const auto& [hour, payer] = row->first;
    if (!may_see(payer)) continue;
    if (message.offset != 0) {
      --message.offset;
      continue;
    }
    fetched.complete = fetched.rows.size() < kMaxUsageRowsSent;
    if (!fetched.complete) break;
    fetched.rows.push_back(
        {hour, payer.team, payer.user, payer.job, row->second.counted, row->second.wasted});
  }
  barrier_.Answer(request, std::move(fetched));
}

}  // namespace patchbay::scheduler

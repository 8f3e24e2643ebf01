#include "tests/sim/sim_costs.h"

#include "runtime/core/strings.h"

namespace patchbay::sim {

protocol::WorkCost CostAudit::CostOf(const LeaseNumber& lease) {
  const std::uint64_t drawn =
      (lease.counter * 0x9E3779B97F4A7C15u) ^ (lease.incarnation * 0xC2B2AE3D27D4EB4Fu);
  return {static_cast<std::int64_t>(1 + (drawn >> 20) % 50'000),
          static_cast<std::int64_t>((drawn >> 40) % 10'000), drawn % 1'000, (drawn >> 10) % 1'000};
}

void CostAudit::Receive(JobId job, const LeaseNumber& lease, const protocol::WorkCost& cost) {
  if (cost != protocol::WorkCost{}) received_.emplace(lease, job);
}

void CostAudit::Received(const protocol::Body& body) {
  if (const auto* finished = std::get_if<protocol::TasksFinished>(&body)) {
    for (const auto& item : finished->items) Receive(item.task.job, item.lease, item.cost);
  } else if (const auto* returned = std::get_if<protocol::ShardsReturned>(&body)) {
    for (const auto& item : returned->items) {
      const auto stream = stream_of_.find(item.lease);
      if (stream != stream_of_.end()) Receive(stream->second, item.lease, item.cost);
    }
  }
}

void CostAudit::Durable(const scheduler::Record& record) {
  const auto* commit = std::get_if<scheduler::CommitRecord>(&record.body);
  if (commit == nullptr) return;
  if (commit->cost != CostOf(commit->lease)) {
    violation_(StrCat("I21: task ", commit->task.ToString(), " is charged ", commit->cost.cpu_us,
                      " us, its worker reported ", CostOf(commit->lease).cpu_us));
  }
  if (!committed_.insert(commit->lease).second) violation_("I21: a lease committed twice");
  committed_us_[commit->task.job] += CostOf(commit->lease).cpu_us;
}

/// The most that the job may be charged, all reports taken.
scheduler::Usage CostAudit::Expected(JobId job) const {
  scheduler::Usage usage;
  for (const auto& [lease, of] : received_) {
    if (of != job || committed_.contains(lease)) continue;
    scheduler::Add(counted_.contains(lease) ? usage.counted : usage.wasted, CostOf(lease));
  }
  const auto committed = committed_us_.find(job);
  if (committed != committed_us_.end()) usage.counted.cpu_us += committed->second;
  return usage;
}

void CostAudit::Check(const std::vector<protocol::UsageRow>& rows, bool whole) const {
  std::map<JobId, scheduler::Usage> charged;
  for (const auto& [lease, job] : received_) charged[job];
  for (const protocol::UsageRow& row : rows) {
    scheduler::Add(charged[row.job].counted, row.counted);
    scheduler::Add(charged[row.job].wasted, row.wasted);
  }
  for (const auto& [job, usage] : charged) {
    const scheduler::Usage expected = Expected(job);
    const std::int64_t all = usage.counted.cpu_us + usage.wasted.cpu_us;
    const std::int64_t all_expected = expected.counted.cpu_us + expected.wasted.cpu_us;
    const bool over = usage.counted.cpu_us > expected.counted.cpu_us || all > all_expected;
    const auto committed = committed_us_.find(job);
    const std::int64_t least = committed == committed_us_.end() ? 0 : committed->second;
    if (!over && usage.counted.cpu_us >= least && (!whole || all == all_expected)) continue;
    violation_(StrCat("I21: job ", job, " is charged ", usage.counted.cpu_us, " us and ",
                      usage.wasted.cpu_us, " us wasted; its outcomes make ",
                      expected.counted.cpu_us, " and ", expected.wasted.cpu_us,
                      whole ? ", all of them known" : ""));
  }
}

}  // namespace patchbay::sim

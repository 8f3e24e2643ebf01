// The costs that simulated workers report, and an account of them that does not use the
// scheduler's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "runtime/wire/protocol/envelope.h"
#include "scheduler/state/records.h"

namespace patchbay::sim {

/// Every lease has its own cost, drawn from its number alone.
class CostAudit {
 public:
  explicit CostAudit(std::function<void(const std::string&)> violation)
      : violation_(std::move(violation)) {}

  static protocol::WorkCost CostOf(const LeaseNumber& lease);

  /// The scheduler receives the message.
  void Received(const protocol::Body& body);
  void Granted(const protocol::ShardLease& lease) { stream_of_[lease.lease] = lease.stream; }
  /// A trainer's ring counted the shard under this lease.
  void Counted(const LeaseNumber& lease) { counted_.insert(lease); }
  void Durable(const scheduler::Record& record);
  /// Holds the scheduler's rows against the account. `whole`: nothing hid a report from it, or made
  /// it forget one.
  void Check(const std::vector<protocol::UsageRow>& rows, bool whole) const;

 private:
  void Receive(JobId job, const LeaseNumber& lease, const protocol::WorkCost& cost);
  scheduler::Usage Expected(JobId job) const;

  const std::function<void(const std::string&)> violation_;
  std::map<LeaseNumber, JobId> stream_of_, received_;
  std::set<LeaseNumber> counted_, committed_;
  std::map<JobId, std::int64_t> committed_us_;
};

}  // namespace patchbay::sim

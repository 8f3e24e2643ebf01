// What people and their tools ask for: jobs, results, logs, the state of the cluster. Private to
// scheduler/core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "scheduler/core/job_logs.h"
#include "scheduler/core/lease_book.h"
#include "scheduler/core/stream_desk.h"

namespace patchbay::scheduler {

/// Takes the messages about jobs, and asks the host for what only it can do. It owns no table; of a
/// job it shows nothing to a key that may not see it.
class JobDesk {
 public:
  JobDesk(const Turn& turn, const CoreOptions& options, JournalGate& gate, JobLogs& logs,
          const WorkerRoster& roster, const LeaseBook& book, const Recovery& recovery,
          StreamDesk& streams)
      : turn_(turn),
        options_(options),
        gate_(gate),
        table_(gate.table()),
        logs_(logs),
        roster_(roster),
        book_(book),
        recovery_(recovery),
        streams_(streams) {}

  void On(const Request& request, protocol::SubmitJob&& message);
  void On(const Request& request, protocol::DescribeJobs&& message);
  void On(const Request& request, protocol::FetchResult&& message);
  void On(const Request& request, protocol::CancelJob&& message);
  void On(const Request& request, protocol::RetryJob&& message);
  void On(const Request& request, protocol::FetchLogs&& message);
  void On(const Request& request, protocol::DescribeCluster&& message);
  void On(const Request& request, protocol::ReloadKeys&& message);
  void On(const Request& request, protocol::ShutDown&& message);

 private:
  /// ResourceExhausted unless one more job may be open, and so many bytes more are there for it.
  Status CheckRoom(std::string_view doing, std::uint64_t bytes) const;
  protocol::JobRow Row(const Job& job, std::size_t failed_max) const;
  /// Newest first, as many as a reply holds; only those older than `before` unless that is 0.
  std::vector<protocol::JobRow> RecentRows(const PeerIdentity& identity, JobId before) const;
  protocol::NodeRow RowOf(const Node& node) const;
  protocol::WorkerRow RowOf(const Worker& worker) const;

  const Turn& turn_;
  const CoreOptions& options_;
  JournalGate& gate_;
  JobTable& table_;
  JobLogs& logs_;
  const WorkerRoster& roster_;
  const LeaseBook& book_;
  const Recovery& recovery_;
  StreamDesk& streams_;
};

}  // namespace patchbay::scheduler

// Handles requests of people and their tools: jobs, results, logs, the state of the cluster.
// Private to scheduler/core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/core_shares.h"
#include "scheduler/core/job_logs.h"
#include "scheduler/core/lease_book.h"
#include "scheduler/core/stream_handler.h"

namespace patchbay::scheduler {

/// Handles the messages about jobs, and sends host requests. It owns no table, and shows nothing of
/// a job to a key that may not see it.
class JobHandler {
 public:
  JobHandler(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
             JobLogs& logs, const WorkerTable& worker_table, const LeaseBook& book,
             const Recovery& recovery, BatchDispatch& batch, StreamHandler& streams)
      : event_(event),
        options_(options),
        barrier_(barrier),
        table_(barrier.table()),
        logs_(logs),
        worker_table_(worker_table),
        book_(book),
        recovery_(recovery),
        batch_(batch),
        streams_(streams),
        shares_(event, worker_table, book, table_) {}

  void On(const Request& request, protocol::SubmitJob&& message);
  void On(const Request& request, protocol::DescribeJobs&& message);
  void On(const Request& request, protocol::FetchResult&& message);
  void On(const Request& request, protocol::CancelJob&& message);
  void On(const Request& request, protocol::RetryJob&& message);
  void On(const Request& request, protocol::ChangeJob&& message);
  void On(const Request& request, protocol::FetchLogs&& message);
  void On(const Request& request, protocol::DescribeCluster&& message);
  void On(const Request& request, protocol::ReloadKeys&& message);
  void On(const Request& request, protocol::ShutDown&& message);

 private:
  /// ResourceExhausted unless one more job with `bytes` bytes may be open.
  Status CheckBytes(std::string_view doing, std::uint64_t bytes) const;
  protocol::JobRow Row(const Job& job, std::size_t failed_max);
  /// The newest jobs first, as many as fit into a reply; only jobs older than `before` unless it is
  /// 0.
  std::vector<protocol::JobRow> RecentRows(const PeerIdentity& identity, JobId before);
  void TakeStreamRow(const Stream& stream, protocol::JobRow& row) const;
  protocol::NodeRow RowOf(const Node& node) const;
  protocol::WorkerRow RowOf(const Worker& worker) const;

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  JobTable& table_;
  JobLogs& logs_;
  const WorkerTable& worker_table_;
  const LeaseBook& book_;
  const Recovery& recovery_;
  BatchDispatch& batch_;
  StreamHandler& streams_;
  CoreShares shares_;
};

}  // namespace patchbay::scheduler

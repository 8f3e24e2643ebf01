// Handles requests of people and their tools: jobs, results, logs, the state of the cluster.
// Private to scheduler/core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/core_shares.h"
#include "scheduler/core/job_causes.h"
#include "scheduler/core/lease_book.h"
#include "scheduler/core/stream_handler.h"
#include "scheduler/state/job_logs.h"
#include "scheduler/state/stream_places.h"

namespace patchbay::scheduler {

/// The tables that jobs are shown from, and the parts that act on their changes.
struct JobParts {
  const WorkerTable& worker_table;
  const LeaseBook& book;
  const Recovery& recovery;
  StreamPlaces& places;
  BatchDispatch& batch;
  StreamHandler& streams;
  CoreShares& shares;
  JobCauses& causes;
};

/// Handles the messages about jobs, and sends host requests. It owns no table, and shows nothing of
/// a job to a key that may not see it.
class JobHandler {
 public:
  JobHandler(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
             JobLogs& logs, const JobParts& parts)
      : event_(event),
        options_(options),
        barrier_(barrier),
        table_(barrier.table()),
        logs_(logs),
        worker_table_(parts.worker_table),
        book_(parts.book),
        recovery_(parts.recovery),
        places_(parts.places),
        batch_(parts.batch),
        streams_(parts.streams),
        shares_(parts.shares),
        causes_(parts.causes) {}

  void On(const Request& request, protocol::SubmitJob&& message);
  void On(const Request& request, protocol::DescribeJobs&& message);
  void On(const Request& request, protocol::FetchResult&& message);
  void On(const Request& request, protocol::CancelJob&& message);
  void On(const Request& request, protocol::RetryJob&& message);
  void On(const Request& request, protocol::ChangeJob&& message);
  void On(const Request& request, protocol::ExplainJob&& message);
  void On(const Request& request, protocol::FetchLogs&& message);
  void On(const Request& request, protocol::DescribeCluster&& message);
  void On(const Request& request, protocol::AdmitBrowser&& message);
  void On(const Request& request, protocol::ReloadKeys&& message);
  void On(const Request& request, protocol::ShutDown&& message);

  /// The cluster as the identity may see it: open streams, and the newest `jobs_max` jobs.
  protocol::ClusterDescribed Describe(const PeerIdentity& identity, std::size_t jobs_max);
  void TakeStateFree(std::uint64_t bytes) { state_free_bytes_ = bytes; }

  /// The state of a registered node, for people.
  std::string_view StateOf(const Node& node) const;
  /// Nodes that are waited for, or drained, and not there.
  std::set<std::string> AwayNodes() const;

  /// Logs why a stream waits, once a change: trainers show the log while they wait.
  void Tick();

 private:
  /// ResourceExhausted unless one more job with `bytes` bytes may be open.
  Status CheckBytes(std::string_view doing, std::uint64_t bytes) const;
  /// Ranks of a stream; 0 for other jobs. `waits`: it may be open without a place.
  struct Entry {
    std::uint32_t ranks = 0;
    bool waits = false;
    std::uint32_t gpus = 0;  ///< its first task needs them
  };
  /// FailedPrecondition where the team may never have such a job, ResourceExhausted where it may
  /// not have one more now.
  Status CheckTeam(std::string_view doing, const std::string& team, const Entry& entry) const;
  protocol::JobRow Row(const Job& job, std::size_t failed_max, bool with_cause = true);
  /// The newest jobs first, as many as fit into a reply; only jobs older than `before` unless it is
  /// 0.
  std::vector<protocol::JobRow> RecentRows(const PeerIdentity& identity, JobId before,
                                           std::size_t most);
  std::vector<protocol::NodeRow> NodeRows() const;
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
  StreamPlaces& places_;
  BatchDispatch& batch_;
  StreamHandler& streams_;
  CoreShares& shares_;
  JobCauses& causes_;
  /// Causes of streams at the last look, and whether their logs have them.
  std::map<JobId, std::pair<std::string_view, bool>> told_;
  TimeMs told_at_ = 0;
  std::uint64_t state_free_bytes_ = 0;
};

}  // namespace patchbay::scheduler

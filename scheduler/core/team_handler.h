// Handles the messages about teams. Private to scheduler/core.
#pragma once

#include <string>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/state/stream_book.h"
#include "scheduler/state/stream_places.h"

namespace patchbay::scheduler {

/// Journals policies and puts them in force. It owns no table.
class TeamHandler {
 public:
  TeamHandler(JournalBarrier& barrier, FairShare& fair, WorkerTable& worker_table,
              const LeaseBook& book, Charges& charges, StreamBook& streams, StreamPlaces& places,
              BatchDispatch& batch)
      : barrier_(barrier),
        fair_(fair),
        worker_table_(worker_table),
        book_(book),
        charges_(charges),
        streams_(streams),
        places_(places),
        batch_(batch) {}

  void On(const Request& request, protocol::ApplyTeams&& message);
  void On(const Request& request, protocol::DescribeTeams&&) {
    barrier_.Answer(request, Describe(*request.identity));
  }
  protocol::TeamsDescribed Describe(const PeerIdentity& identity);

  /// Whether holders and charges agree with the leases, and later leases with the caps. Slow: for
  /// tests and the simulator.
  Status Check() const;

 private:
  Status CheckPolicy(const protocol::ApplyTeams& message, const model::TeamPolicy& policy) const;
  Status CheckCaps() const;
  Amounts NeedOf(const Lease& lease) const;
  /// Jobs are charged to the team that they are in now.
  void MoveJobs();
  /// Cores that the job could use in addition, in thousandths.
  std::uint64_t WaitingMillis(const Job& job, std::uint64_t up_millis) const;

  JournalBarrier& barrier_;
  FairShare& fair_;
  WorkerTable& worker_table_;
  const LeaseBook& book_;
  Charges& charges_;
  StreamBook& streams_;
  StreamPlaces& places_;
  BatchDispatch& batch_;
  LeaseNumber before_policy_;  ///< the last lease before the policy that holds
};

}  // namespace patchbay::scheduler

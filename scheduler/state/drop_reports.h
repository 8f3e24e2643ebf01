// Peers that trainers turned away from their data paths, and this scheduler from its own port, for
// people to see. Not journalled.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

/// The last report of each rank, for at most kMaxTrainersWithDrops. It stays when its stream ends.
class DropReports {
 public:
  /// Replaces the rank's earlier report. Surplus rows and long texts are cut, and bytes that are
  /// not printable ASCII become '?': the text may be anything that a trainer's host can send.
  void Take(protocol::PeersDropped&& report);

  using Reports = std::map<std::pair<JobId, std::uint32_t>, protocol::PeersDropped>;
  const Reports& reports() const { return reports_; }

  /// Takes the peers that this scheduler's own port turned away: a report of stream 0.
  void TakeOwn(std::vector<protocol::PeersDropped::Item>&& items) { own_.items = std::move(items); }
  const protocol::PeersDropped& own() const { return own_; }

 private:
  Reports reports_;
  protocol::PeersDropped own_;
};

}  // namespace patchbay::scheduler

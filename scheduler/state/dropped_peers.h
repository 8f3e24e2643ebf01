// Whom the trainers turned away from their data paths, for people to see. Not journalled.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "runtime/base/ids.h"
#include "runtime/protocol/messages.h"

namespace patchbay::scheduler {

/// What each rank reported last, of at most kMaxTrainersWithDrops. It stays when its stream ends.
class DroppedPeers {
 public:
  /// In place of what that rank said before. What is too much or too long is cut, and bytes that
  /// are not printable ASCII become '?': the text may be anything that a trainer's host can send.
  void Take(protocol::PeersDropped&& report);

  using Reports = std::map<std::pair<JobId, std::uint32_t>, protocol::PeersDropped>;
  const Reports& reports() const { return reports_; }

 private:
  Reports reports_;
};

}  // namespace patchbay::scheduler

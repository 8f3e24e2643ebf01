#include "scheduler/state/drop_reports.h"

#include <algorithm>
#include <string>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

void Clean(std::string& text) {
  if (text.size() > kMaxPeerTextBytes) text.resize(kMaxPeerTextBytes);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
}

}  // namespace

void DropReports::Take(protocol::PeersDropped&& report) {
  if (report.items.size() > protocol::kMaxDroppedPeers) {
    report.items.resize(protocol::kMaxDroppedPeers);
  }
  for (protocol::PeersDropped::Item& item : report.items) {
    Clean(item.address);
    Clean(item.reason);
  }
  const std::pair key{report.stream, report.rank};
  reports_[key] = std::move(report);
  if (reports_.size() > kMaxTrainersWithDrops) reports_.erase(reports_.begin());
}

}  // namespace patchbay::scheduler

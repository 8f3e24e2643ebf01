#include "runtime/os/dropped_peers.h"

#include <algorithm>
#include <ctime>

namespace patchbay {
namespace {

/// "10.0.0.7" of "10.0.0.7:4711", "fd00::1" of "[fd00::1]:4711".
std::string_view HostOf(std::string_view address) {
  if (address.starts_with('[')) return address.substr(1, address.find(']') - 1);
  return address.substr(0, address.rfind(':'));
}

}  // namespace

std::uint64_t DroppedPeers::Count(std::string_view address, std::string_view reason) {
  std::string_view host = HostOf(address);
  const auto is_same = [&](const DroppedPeer& peer) {
    return peer.address == host && peer.reason == reason;
  };
  const std::lock_guard lock(mu_);
  auto it = std::find_if(peers_.begin(), peers_.end(), is_same);
  if (it == peers_.end() && peers_.size() >= kMaxPeersNamed) {
    host = "other addresses";
    reason = "any";
    it = std::find_if(peers_.begin(), peers_.end(), is_same);
  }
  if (it == peers_.end()) {
    peers_.push_back({std::string(host), std::string(reason)});
    it = std::prev(peers_.end());
  }
  ++it->times;
  it->last_at = std::time(nullptr);
  return ++total_;
}

std::vector<DroppedPeer> DroppedPeers::List() const {
  std::vector<DroppedPeer> list;
  {
    const std::lock_guard lock(mu_);
    list = peers_;
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.times > b.times; });
  return list;
}

std::uint64_t DroppedPeers::total() const {
  const std::lock_guard lock(mu_);
  return total_;
}

}  // namespace patchbay

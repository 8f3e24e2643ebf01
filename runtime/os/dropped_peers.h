// Peers that a listener turned away, and why: bounded whatever strangers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay {

/// Address and reason pairs that are told apart; the rest is one row.
inline constexpr std::size_t kMaxPeersNamed = 31;

struct DroppedPeer {
  std::string address;  ///< numeric, without a port; "other addresses" once all rows are taken
  std::string reason;
  std::uint64_t times = 0;
  std::int64_t last_at = 0;  ///< seconds since 1970
  bool operator==(const DroppedPeer&) const = default;
};

/// Thread-safe.
class DroppedPeers {
 public:
  /// `address` is "ip:port" or any other word; the port is left out. Returns how often any was
  /// dropped so far.
  std::uint64_t Count(std::string_view address, std::string_view reason);
  /// Peers, most often dropped first.
  std::vector<DroppedPeer> List() const;
  std::uint64_t total() const;

 private:
  mutable std::mutex mu_;
  std::vector<DroppedPeer> peers_;  ///< guarded by mu_
  std::uint64_t total_ = 0;         ///< guarded by mu_
};

}  // namespace patchbay

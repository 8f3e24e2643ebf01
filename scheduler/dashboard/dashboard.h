// The dashboard: one page for browsers, for users who prove their key.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/core/core.h"
#include "scheduler/dashboard/view.h"

namespace patchbay::scheduler {

/// A browser gets a secret in a cookie, and a code to show, which is no secret. The user of a key
/// sends the code over a connection of that key (`patchbay dashboard CODE`), and from then on the
/// browser sees what the key may see. No secret is typed, shown, or in an address. Nothing can be
/// changed through the page. At most kMostBrowsers are known; the oldest makes room, those without
/// a user first.
class Dashboard {
 public:
  static constexpr std::size_t kMostBrowsers = 256;
  static constexpr std::int64_t kCodeLastsSeconds = 600, kUserLastsSeconds = 12 * 3600;
  /// A view is as old as this at most, and made once for all browsers of a key.
  static constexpr std::int64_t kViewAgeMs = 2'000;

  /// Describes the cluster to a key; nothing when that is not possible now. Any thread.
  using Look = std::function<std::optional<Seen>(const PeerIdentity& identity)>;

  /// Errors as of HttpListener::Open, which says what `tls` is.
  static StatusOr<std::unique_ptr<Dashboard>> Open(std::string_view place, const std::string& tls,
                                                   Look look);
  virtual ~Dashboard() = default;

  virtual const std::string& url() const = 0;
  /// The browser that shows the code sees what the identity may see. NotFound when none shows it.
  virtual Status Admit(std::string_view code, const PeerIdentity& identity) = 0;
  /// Cores that teams hold; call it each minute, and the page shows the last hour.
  virtual void KeepShares(const std::vector<protocol::TeamRow>& rows) = 0;
  /// Browsers of keys for which `valid` is false see nothing more.
  virtual void KeepKeys(const std::function<bool(const std::string& key)>& valid) = 0;
};

}  // namespace patchbay::scheduler

// The state of a node for the service manager that started it (systemd, Type=notify), without a
// library.
#pragma once

#include <string>
#include <string_view>

namespace patchbay::workers {

/// Sends `state`, lines of sd_notify(3), to the socket at `address`: a path, or "@NAME". Never
/// blocks; one that cannot be delivered is lost. Does nothing when `address` is "".
void NotifyService(const std::string& address, std::string_view state);

}  // namespace patchbay::workers

// A range of TCP ports, as a firewall states it.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/status.h"

namespace patchbay {

/// Ports that may be listened on; {0, 0} = any that is free.
struct PortRange {
  std::uint16_t first = 0, last = 0;
  bool operator==(const PortRange&) const = default;
};
/// "7800-7899", or "7800" for one; "" = any. InvalidArgument for anything else, port 0 and a range
/// that runs backwards.
StatusOr<PortRange> ParsePortRange(std::string_view text);

}  // namespace patchbay

// The dashboard's figures as its page reads them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

/// The cluster and the shares of teams, as they were described to a key.
struct Seen {
  protocol::ClusterDescribed cluster;
  protocol::TeamsDescribed teams;
};

/// Cores of teams, in thousandths, at each minute of the last hour, the oldest first.
using HeldInHour = std::map<std::string, std::deque<std::uint64_t>>;

/// JSON of everything seen: streams, jobs, teams with their past, nodes, and what failed. `viewer`
/// is the key's name, `now` in seconds since 1970.
std::string ViewOf(const Seen& seen, const HeldInHour& held, const std::string& viewer,
                   std::int64_t now);

}  // namespace patchbay::scheduler

// Peak memory of a cluster's processes on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

/// Process name ("trainer", "worker 0", "agent", "scheduler") to the most memory it ever held, in
/// bytes (VmHWM: includes the pages of mapped rings). In a cluster of several nodes the names of
/// theirs begin with the node's ("node2 worker 0"). Processes that this one cannot see (of other
/// machines and process tables) are left out; "trainer" is the caller.
std::map<std::string, std::uint64_t> PeakMemory(const protocol::ClusterDescribed& cluster);

}  // namespace patchbay::cli

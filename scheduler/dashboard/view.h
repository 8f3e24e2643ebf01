// The dashboard's figures as its page reads them.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

/// JSON of the cluster as it was described to a key: streams, jobs, nodes, and what failed.
/// `viewer` is the key's name, `now` in seconds since 1970.
std::string ViewOf(const protocol::ClusterDescribed& cluster, const std::string& viewer,
                   std::int64_t now);

}  // namespace patchbay::scheduler

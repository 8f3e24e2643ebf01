// A rehearsal of `site run`: the nodes of a step look for one another in the rendezvous folder, and
// connect to the first one.
#pragma once

#include <string>

#include "runtime/cli/cluster/machine_checks.h"
#include "runtime/cli/site/site_engine.h"

namespace patchbay::cli {

struct MeetingChecks {
  Check rendezvous, ports;
};

/// Every node of the engine calls it within 3 s. Removes its files. Call it under an
/// InterruptScope.
MeetingChecks MeetNodes(const Engine& engine, const std::string& folder,
                        const std::string& interface);

}  // namespace patchbay::cli

// The checks of `patchbay doctor --site`: whether an engine gives what Patchbay needs there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/cluster/machine_checks.h"
#include "runtime/client/environment.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// Names of the engines that there are checks for.
std::vector<std::string> SiteEngines();

struct SiteQuestion {
  std::string engine;        ///< one of SiteEngines()
  std::string rendezvous;    ///< as `site run` has it; "" = its default
  std::string interface;     ///< as `site run` has it; "" = its default
  std::string cluster_file;  ///< key file of a standing cluster; "" = none
};

/// Seconds that Slurm leaves a step from SIGTERM on (KillWait), less one for our own end; nothing
/// where scontrol does not say.
std::optional<std::int64_t> GraceOfSlurm();

/// Asks the engine's own programs, the file system and the network, for 30 s at most. Under Slurm
/// the nodes of the step meet. A usage error outside the engine, with what is missing.
StatusOr<std::vector<Check>> CheckSite(const client::Environment& environment,
                                       const SiteQuestion& question);

}  // namespace patchbay::cli

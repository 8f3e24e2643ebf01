// Shares in calm runs: teams and users with more work than there are cores, costs that are equal
// wherever work runs, and workers that run a task and make shards at the same time on one core.
#pragma once

#include <cstdint>

#include "tests/sim/sim_world.h"

namespace patchbay::sim {

/// A run whose teams, users, work and cores are drawn from the seed. A violation is a user whose
/// processor time differs from what water filling gives by more than 5 % of the cores.
RunResult RunShares(std::uint64_t seed, bool trace);

/// A team has long tasks on all cores when another comes for its share. A violation is a core that
/// is not lent or not handed back in time, a task that is handed back too soon or for nobody, and
/// more of them than the owner has cores.
RunResult RunLending(std::uint64_t seed);

}  // namespace patchbay::sim

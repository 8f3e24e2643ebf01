// Shares in calm runs: teams and users with more work than there are cores, costs that are equal
// wherever work runs, and workers that run a task and make shards at the same time on one core.
#pragma once

#include <cstdint>

#include "tests/sim/sim_world.h"

namespace patchbay::sim {

/// A run whose teams, users, work and cores are drawn from the seed. A violation is a user whose
/// processor time differs from what water filling gives by more than 5 % of the cores.
RunResult RunShares(std::uint64_t seed, bool trace);

}  // namespace patchbay::sim

// Answers of `why` are carried out: the change that one names is made on a copy of the core.
#pragma once

#include <cstdint>

#include "tests/sim/sim_world.h"

namespace patchbay::sim {

/// A run whose nodes, teams, jobs and mishaps are drawn from the seed. At times each job that waits
/// is asked why, and a copy of the core is given the change that the answer names. A violation is a
/// job that starts without it, one that does not start with it, and a name that is not its user's.
/// Coverage: jobs by cause, and those that start with the first change.
RunResult RunWhys(std::uint64_t seed, bool trace);

}  // namespace patchbay::sim

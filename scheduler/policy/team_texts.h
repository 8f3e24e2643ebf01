// A policy of teams as it comes, and teams as people see them.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/jobs/team_policy.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/policy/fair_share.h"

namespace patchbay::scheduler {

/// InvalidArgument for one that is too large, not a policy, or contradicts itself.
StatusOr<model::TeamPolicy> ReadPolicy(const protocol::ApplyTeams& message);

/// One for each resource whose guarantees are scaled down.
std::vector<std::string> Warnings(const FairShare& fair);

/// Without what is wanted beyond what is held, and without jobs.
protocol::TeamRow RowOf(const FairShare::Standing& standing);

/// "default" for keys without a team.
std::string ShownTeam(const std::string& team);

/// Where a team is in a file of teams.
std::string KeyOfTeam(const std::string& team);

}  // namespace patchbay::scheduler

// A file of teams, as `patchbay teams` reads it: configs/teams.md.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/model/jobs/team_policy.h"

namespace patchbay::cli {

struct TeamFile {
  model::TeamPolicy policy;
  std::string text;
};

/// InvalidArgument, with file, line and key, for a file that `teams apply` would not send.
StatusOr<TeamFile> ReadTeamFile(const std::string& path);
/// The same for its text.
StatusOr<model::TeamPolicy> ParseTeams(std::string_view text, const std::string& file);

}  // namespace patchbay::cli

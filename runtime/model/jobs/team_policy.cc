#include "runtime/model/jobs/team_policy.h"

#include <algorithm>
#include <cctype>

#include "runtime/core/strings.h"

namespace patchbay::model {
namespace {

constexpr std::size_t kMaxNameBytes = 64;

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (std::isalnum(c) != 0 && c < 128) || c == '_' || c == '-' || c == '.';
         });
}

/// A task takes a whole core, so a cap leaves at least one or none.
bool IsWhole(const TeamMost& most) {
  return !most.cpu_millis || *most.cpu_millis == 0 || *most.cpu_millis >= 1000;
}

Status CheckTeam(const std::string& team, const TeamRules& rules) {
  const auto refuse = [&](const auto&... cause) {
    return InvalidArgument("team ", team, ": ", cause...);
  };
  if (!IsWhole(rules.most)) return refuse("most.cores is neither 0 nor at least 1");
  for (const auto& [name, user] : rules.users) {
    if (!IsWhole(user.most)) {
      return refuse("user ", name, ": most.cores is neither 0 nor at least 1");
    }
    if (user.most.jobs || user.most.streams) {
      return refuse("user ", name, ": jobs and streams are limited for the team as a whole");
    }
  }
  const TeamGuarantee& guaranteed = rules.guaranteed;
  if (guaranteed.cpu_millis != 0 && guaranteed.cpu_percent != 0) {
    return refuse("guaranteed.cores is a number or a percentage, not both");
  }
  if (rules.most.cpu_millis && *rules.most.cpu_millis < guaranteed.cpu_millis) {
    return refuse("most.cores is below guaranteed.cores");
  }
  if (rules.most.gpus && *rules.most.gpus < guaranteed.gpus) {
    return refuse("most.gpus is below guaranteed.gpus");
  }
  if (rules.most.memory_bytes && *rules.most.memory_bytes < guaranteed.memory_bytes) {
    return refuse("most.memory is below guaranteed.memory");
  }
  if (rules.users.size() > kMaxTeamUsers) {
    return refuse("it has more than ", kMaxTeamUsers, " users");
  }
  return absl::OkStatus();
}

}  // namespace

Status Check(const TeamPolicy& policy) {
  if (policy.teams.size() > kMaxTeams) {
    return InvalidArgument("there are more than ", kMaxTeams, " teams");
  }
  std::uint64_t percent = policy.others ? policy.others->guaranteed.cpu_percent : 0;
  for (const auto& [team, rules] : policy.teams) {
    if (!IsName(team)) {
      return InvalidArgument("team '", team, "': a name is 1 to ", kMaxNameBytes,
                             " letters, digits, '.', '_' and '-'");
    }
    if (team == kDefaultTeam) {
      return InvalidArgument("team ", team, ": the name stands for keys without a team");
    }
    PB_RETURN_IF_ERROR(CheckTeam(team, rules));
    percent += rules.guaranteed.cpu_percent;
  }
  if (percent > 100) {
    return InvalidArgument("guarantees of ", percent, " % of the cores: 100 are the most");
  }
  return policy.others ? CheckTeam(kDefaultTeam, *policy.others) : absl::OkStatus();
}

const TeamRules* TeamPolicy::Find(const std::string& team) const {
  if (team.empty() || team == kDefaultTeam) return others ? &*others : nullptr;
  const auto found = teams.find(team);
  return found == teams.end() ? nullptr : &found->second;
}

}  // namespace patchbay::model

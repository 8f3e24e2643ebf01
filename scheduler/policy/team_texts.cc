#include "scheduler/policy/team_texts.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

StatusOr<model::TeamPolicy> ReadPolicy(const protocol::ApplyTeams& message) {
  if (message.policy.size() > kMaxPolicyBytes || message.source.size() > kMaxPolicyBytes) {
    return InvalidArgument("it is larger than ", kMaxPolicyBytes, " bytes");
  }
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(message.policy, "policy"));
  PB_ASSIGN_OR_RETURN(model::TeamPolicy policy, FromJson<model::TeamPolicy>(json, "policy"));
  PB_RETURN_IF_ERROR(model::Check(policy));
  return policy;
}

std::vector<std::string> Warnings(const FairShare& fair) {
  static constexpr const char* kUp[kResources] = {"cores that are", "GPUs that are",
                                                  "memory that is"};
  std::vector<std::string> warnings;
  for (std::size_t of = 0; of < kResources; ++of) {
    if (!fair.IsScaled(of)) continue;
    warnings.push_back(StrCat("the guarantees are more than the ", kUp[of],
                              " up: each is scaled down in proportion"));
  }
  return warnings;
}

protocol::TeamRow RowOf(const FairShare::Standing& standing) {
  const auto most = [&](std::size_t of) {
    return standing.most[of] == FairShare::kNoCap ? 0 : standing.most[of];
  };
  protocol::TeamRow row;
  row.team = standing.team;
  row.user = standing.user;
  row.guaranteed_cpu_millis = standing.guaranteed[kCores];
  row.guaranteed_gpus = standing.guaranteed[kGpus];
  row.guaranteed_memory_bytes = standing.guaranteed[kMemory];
  row.most_cpu_millis = most(kCores);
  if (standing.most[kGpus] != FairShare::kNoCap) {
    row.most_gpus = static_cast<std::int64_t>(standing.most[kGpus]);
  }
  row.most_memory_bytes = most(kMemory);
  row.held_cpu_millis = row.wanted_cpu_millis = standing.held[kCores];
  row.held_gpus = standing.held[kGpus];
  row.held_memory_bytes = standing.held[kMemory];
  row.weight_millis = standing.weight_millis;
  row.lend_percent = standing.lend_percent;
  row.used_cpu_ms = standing.used_ms;
  return row;
}

std::string ShownTeam(const std::string& team) { return team.empty() ? model::kDefaultTeam : team; }

std::string KeyOfTeam(const std::string& team) {
  return team == model::kDefaultTeam ? team : StrCat("teams.", team);
}

}  // namespace patchbay::scheduler

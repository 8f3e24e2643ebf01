// The policy of teams: shares of the cluster, as `patchbay teams apply` sends it and the journal
// keeps it. Amounts of cores are in thousandths.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"

namespace patchbay::model {

/// The name of the team of keys that name none.
inline constexpr char kDefaultTeam[] = "default";
inline constexpr std::size_t kMaxTeams = 256, kMaxTeamUsers = 4'096;

/// Resources that a team gets before all others, while it has work for them. Cores: a number, or a
/// part of the cores that are up.
struct TeamGuarantee {
  std::uint32_t cpu_millis = 0;
  std::uint32_t cpu_percent = 0;  ///< part of what is up; not with cpu_millis
  std::uint32_t gpus = 0;
  std::uint64_t memory_bytes = 0;

  bool operator==(const TeamGuarantee&) const = default;
  static constexpr auto Fields() {
    using T = TeamGuarantee;
    return AsObject(Field("cpu_millis", &T::cpu_millis),
                    Field("cpu_percent", &T::cpu_percent).Within(0, 100), Field("gpus", &T::gpus),
                    Field("memory_bytes", &T::memory_bytes));
  }
};

/// The most that a team, or a user of it, has at a time; unset: no cap.
struct TeamMost {
  std::optional<std::uint32_t> cpu_millis = {}, gpus = {}, streams = {}, jobs = {};
  std::optional<std::uint64_t> memory_bytes = {};

  bool operator==(const TeamMost&) const = default;
  static constexpr auto Fields() {
    using T = TeamMost;
    return AsObject(Field("cpu_millis", &T::cpu_millis), Field("gpus", &T::gpus),
                    Field("memory_bytes", &T::memory_bytes), Field("streams", &T::streams),
                    Field("jobs", &T::jobs));
  }
};

/// A user of a team, by the name of the key.
struct TeamUser {
  TeamMost most = {};

  bool operator==(const TeamUser&) const = default;
  static constexpr auto Fields() { return AsObject(Field("most", &TeamUser::most)); }
};

struct TeamRules {
  TeamGuarantee guaranteed = {};
  TeamMost most = {};
  std::uint32_t weight_millis = 1000;  ///< share of what is beyond guarantees; 1000 = weight 1
  std::uint32_t lend_percent = 100;    ///< part of its guarantee that others may have while idle
  std::map<std::string, TeamUser> users = {};

  bool operator==(const TeamRules&) const = default;
  static constexpr auto Fields() {
    using T = TeamRules;
    return AsObject(Field("guaranteed", &T::guaranteed), Field("most", &T::most),
                    Field("weight_millis", &T::weight_millis).Within(1, 1'000'000),
                    Field("lend_percent", &T::lend_percent).Within(0, 100),
                    Field("users", &T::users));
  }
};

struct TeamPolicy {
  std::uint32_t half_life_s = 24 * 3600;    ///< usage is halved in it; 1 minute to 30 days
  std::uint32_t lend_max_ms = 1'000;        ///< longest task that may start on lent cores
  std::uint32_t reclaim_after_ms = 30'000;  ///< time after which one that runs there is handed back
  std::map<std::string, TeamRules> teams = {};
  /// Rules of kDefaultTeam. Unset: keys without a team are refused.
  std::optional<TeamRules> others = TeamRules{};

  bool operator==(const TeamPolicy&) const = default;
  /// Null for a team that is not there.
  const TeamRules* Find(const std::string& team) const;
  static constexpr auto Fields() {
    using T = TeamPolicy;
    return AsObject(Field("half_life_s", &T::half_life_s).Within(60, 30.0 * 24 * 3600),
                    Field("lend_max_ms", &T::lend_max_ms),
                    Field("reclaim_after_ms", &T::reclaim_after_ms).Within(1'000, 8.64e7),
                    Field("teams", &T::teams), Field("default", &T::others).Required());
  }
};

/// InvalidArgument, with the team, for what the range of no single field refuses: a cap below its
/// guarantee, guarantees beyond 100 %, names.
Status Check(const TeamPolicy& policy);

}  // namespace patchbay::model

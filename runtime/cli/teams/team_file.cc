#include "runtime/cli/teams/team_file.h"

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/cli/command.h"
#include "runtime/core/strings.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/format/yaml/yaml.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

using config::Key;
using config::KeyType;

constexpr double kMostCores = 1'000'000;
constexpr double kMostBytes = 0x1p60;

/// The number at the beginning of the text, and its unit; nothing when it is negative or none.
std::optional<std::pair<double, std::string_view>> NumberAndUnit(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  return std::pair(number, std::string_view(at, static_cast<std::size_t>(end - at)));
}

/// Milliseconds of "500ms", "1s", "5m", "24h" or "30d".
std::optional<double> DurationMs(std::string_view text) {
  static const std::map<std::string_view, double> units = {
      {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
  const auto parts = NumberAndUnit(text);
  if (!parts.has_value()) return std::nullopt;
  const auto unit = units.find(parts->second);
  return unit == units.end() ? std::nullopt : std::optional(parts->first * unit->second);
}

/// A text that stands for a duration of that range.
Key Duration(const char* name, const char* fallback, double min_ms, double max_ms,
             const char* range) {
  Key key{.name = name, .fallback = fallback};
  key.check = [=](const Json& value) -> Status {
    const auto ms = DurationMs(value.get_ref<const std::string&>());
    if (ms.has_value() && *ms >= min_ms && *ms <= max_ms) return absl::OkStatus();
    return InvalidArgument("expected a duration of ", range, ", such as 500ms, 30s, 5m, 24h or 2d");
  };
  return key;
}

Key Cores(bool may_be_percent) {
  Key key{.name = "cores"};
  key.check = [=](const Json& value) -> Status {
    const auto parts = NumberAndUnit(value.get_ref<const std::string&>());
    const bool percent = parts.has_value() && parts->second == "%" && may_be_percent;
    const double most = percent ? 100 : kMostCores;
    const bool whole = !percent || (parts.has_value() && parts->first == std::floor(parts->first));
    if (parts.has_value() && (percent || parts->second.empty()) && parts->first <= most && whole) {
      return absl::OkStatus();
    }
    return InvalidArgument("expected a number of cores, 0 or more",
                           may_be_percent ? ", or whole percents, 0% to 100%" : "");
  };
  return key;
}

Key Lend() {
  Key key{.name = "lend", .fallback = "100%"};
  key.check = [](const Json& value) -> Status {
    const auto parts = NumberAndUnit(value.get_ref<const std::string&>());
    const bool fits = parts.has_value() && parts->second == "%" && parts->first <= 100 &&
                      parts->first == std::floor(parts->first);
    return fits ? absl::OkStatus() : InvalidArgument("expected whole percents, 0% to 100%");
  };
  return key;
}

/// Bytes of "256GiB".
std::optional<double> Bytes(std::string_view text) {
  static const std::map<std::string_view, double> units = {
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const auto parts = NumberAndUnit(text);
  if (!parts.has_value()) return std::nullopt;
  const auto unit = units.find(parts->second);
  return unit == units.end() ? std::nullopt : std::optional(parts->first * unit->second);
}

Key Memory() {
  Key key{.name = "memory"};
  key.check = [](const Json& value) -> Status {
    const auto bytes = Bytes(value.get_ref<const std::string&>());
    if (bytes.has_value() && *bytes >= 1 && *bytes <= kMostBytes) return absl::OkStatus();
    return InvalidArgument("expected an amount of memory above 0, such as 512MiB, 256GiB or 2TiB");
  };
  return key;
}

Key Count(const char* name) { return {.name = name, .type = KeyType::kInt, .min = 0, .max = 1e6}; }

std::vector<Key> RulesKeys() {
  const Key user_most{.name = "most",
                      .type = KeyType::kMap,
                      .optional = true,
                      .members = {Cores(false), Count("gpus"), Memory()}};
  const Key user{.name = "user", .type = KeyType::kMap, .members = {user_most}};
  return {{.name = "guaranteed",
           .type = KeyType::kMap,
           .optional = true,
           .members = {Cores(true), Count("gpus"), Memory()}},
          {.name = "most",
           .type = KeyType::kMap,
           .optional = true,
           .members = {Cores(false), Count("gpus"), Memory(), Count("jobs"), Count("streams")}},
          {.name = "weight", .type = KeyType::kFloat, .fallback = 1, .min = 0.001, .max = 1000},
          Lend(),
          {.name = "users", .type = KeyType::kNamed, .members = {user}}};
}

const Key& TeamKeys() {
  static const Key table = [] {
    Key teams{.name = "teams", .type = KeyType::kNamed};
    teams.members = {{.name = "team", .type = KeyType::kMap, .members = RulesKeys()}};
    Key others{.name = "default", .type = KeyType::kMap, .optional = true};
    others.members = RulesKeys();
    return Key{.type = KeyType::kMap,
               .members = {Duration("half_life", "24h", 6e4, 30 * 8.64e7, "1 minute to 30 days"),
                           Duration("lend_max", "1s", 0, 8.64e7, "at most a day"),
                           Duration("reclaim_after", "30s", 1e3, 8.64e7, "1 second to a day"),
                           teams, others}};
  }();
  return table;
}

std::uint32_t Millis(double number) {
  return static_cast<std::uint32_t>(std::lround(number * 1000));
}

std::optional<std::uint64_t> MemoryOf(const Json& given) {
  if (!given.contains("memory")) return std::nullopt;
  return static_cast<std::uint64_t>(*Bytes(given["memory"].get_ref<const std::string&>()));
}

std::optional<std::uint32_t> CountOf(const Json& most, const char* name) {
  if (!most.contains(name)) return std::nullopt;
  return most[name].get<std::uint32_t>();
}

model::TeamMost MostOf(const Json& rules) {
  model::TeamMost most;
  if (!rules.contains("most")) return most;
  const Json& given = rules["most"];
  if (given.contains("cores")) {
    most.cpu_millis = Millis(NumberAndUnit(given["cores"].get_ref<const std::string&>())->first);
  }
  most.gpus = CountOf(given, "gpus");
  most.memory_bytes = MemoryOf(given);
  most.jobs = CountOf(given, "jobs");
  most.streams = CountOf(given, "streams");
  return most;
}

model::TeamGuarantee GuaranteeOf(const Json& rules) {
  model::TeamGuarantee guaranteed;
  if (!rules.contains("guaranteed")) return guaranteed;
  const Json& given = rules["guaranteed"];
  if (given.contains("cores")) {
    const auto parts = *NumberAndUnit(given["cores"].get_ref<const std::string&>());
    if (parts.second.empty()) {
      guaranteed.cpu_millis = Millis(parts.first);
    } else {
      guaranteed.cpu_percent = static_cast<std::uint32_t>(parts.first);
    }
  }
  guaranteed.gpus = CountOf(given, "gpus").value_or(0);
  guaranteed.memory_bytes = MemoryOf(given).value_or(0);
  return guaranteed;
}

model::TeamRules RulesOf(const Json& given) {
  model::TeamRules rules;
  rules.guaranteed = GuaranteeOf(given);
  rules.most = MostOf(given);
  rules.weight_millis = Millis(given["weight"].get<double>());
  rules.lend_percent =
      static_cast<std::uint32_t>(NumberAndUnit(given["lend"].get_ref<const std::string&>())->first);
  if (!given.contains("users")) return rules;
  for (const auto& [name, user] : given["users"].items()) rules.users[name].most = MostOf(user);
  return rules;
}

/// The place of a key, for what no single value shows to be wrong.
Status At(const config::YamlNode& node, const std::string& key, const Status& cause) {
  return InvalidArgument(*node.source, ":", std::max(1, config::LineOf(node, key)), ": key '", key,
                         "': ", MessageOf(cause));
}

/// A key is of one team, so a user stands in one.
Status CheckUsers(const config::YamlNode& node, const model::TeamPolicy& policy) {
  std::map<std::string, std::string> team_of;
  for (const auto& [team, rules] : policy.teams) {
    for (const auto& [user, limits] : rules.users) {
      const auto [before, fresh] = team_of.emplace(user, team);
      if (fresh) continue;
      return At(node, StrCat("teams.", team, ".users.", user),
                InvalidArgument("duplicate user: team ", before->second, " has it too"));
    }
  }
  return absl::OkStatus();
}

/// Each team by itself, so that the line is that of the team at fault; then all of them together.
Status CheckRules(const config::YamlNode& node, const model::TeamPolicy& policy) {
  for (const auto& [team, rules] : policy.teams) {
    model::TeamPolicy one;
    one.teams[team] = rules;
    if (const Status fits = model::Check(one); !fits.ok()) return At(node, "teams." + team, fits);
  }
  model::TeamPolicy rest;
  rest.others = policy.others;
  if (const Status fits = model::Check(rest); !fits.ok()) return At(node, "default", fits);
  PB_RETURN_IF_ERROR(CheckUsers(node, policy));
  const Status fits = model::Check(policy);
  return fits.ok() ? fits : At(node, "teams", fits);
}

}  // namespace

StatusOr<model::TeamPolicy> ParseTeams(std::string_view text, const std::string& file) {
  PB_ASSIGN_OR_RETURN(const config::YamlNode node, config::ParseYaml(text, file));
  PB_ASSIGN_OR_RETURN(const Json values, config::Validate(node, TeamKeys()));
  model::TeamPolicy policy;
  policy.half_life_s =
      static_cast<std::uint32_t>(*DurationMs(values["half_life"].get<std::string>()) / 1000);
  policy.lend_max_ms =
      static_cast<std::uint32_t>(*DurationMs(values["lend_max"].get<std::string>()));
  policy.reclaim_after_ms =
      static_cast<std::uint32_t>(*DurationMs(values["reclaim_after"].get<std::string>()));
  if (values.contains("teams")) {
    for (const auto& [name, rules] : values["teams"].items()) policy.teams[name] = RulesOf(rules);
  }
  const config::YamlNode* const others = node.Find("default");
  if (values.contains("default")) policy.others = RulesOf(values["default"]);
  if (others != nullptr && others->kind == config::YamlNode::Kind::kNull) policy.others.reset();
  PB_RETURN_IF_ERROR(CheckRules(node, policy));
  return policy;
}

StatusOr<TeamFile> ReadTeamFile(const std::string& path) {
  TeamFile file;
  PB_ASSIGN_OR_RETURN(file.text, ReadFile(Folders::OfThisUser(), path, config::kMaxYamlBytes));
  auto policy = ParseTeams(file.text, path);
  if (!policy.ok()) return AsUsageError(policy.status());
  file.policy = *std::move(policy);
  return file;
}

}  // namespace patchbay::cli

// Readers of run configs and plans as programs of this tree call them: with the table of its ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/all_ops.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

inline config::Key RunConfigKeys() { return RunConfigKeys(ops::Table()); }
inline StatusOr<RunConfig> ParseRunConfig(std::string_view yaml, std::string_view source) {
  PB_ASSIGN_OR_RETURN(const config::YamlNode node, config::ParseYaml(yaml, source));
  return RunConfigFromYaml(ops::Table(), node);
}
inline StatusOr<RunConfig> ReadRunConfig(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const config::YamlNode node, config::ReadYamlFile(allowed, path));
  return RunConfigFromYaml(ops::Table(), node);
}
inline StatusOr<RunConfig> RunConfigFromJson(const Json& value) {
  return RunConfigFromJson(ops::Table(), value);
}
inline StatusOr<Plan> ParsePlan(std::string_view text) { return Plan::Parse(ops::Table(), text); }
inline StatusOr<std::vector<OpStep>> SortOps(const Json& preprocess, const Json& augment) {
  return SortOps(ops::Table(), preprocess, augment);
}
inline Status CheckOps(const Json& preprocess, const Json& augment, const Extent& patch,
                       PatchKind kind = PatchKind::kPlane) {
  return CheckOps(ops::Table(), preprocess, augment, patch, kind);
}

}  // namespace patchbay::plan

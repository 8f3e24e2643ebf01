#include "runtime/client/stream_paths.h"

#include <algorithm>
#include <utility>

#include "runtime/client/paths.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/json/json_stream.h"

namespace patchbay::client {
namespace {

constexpr std::string_view kStreamPlan = "stream plan";

}  // namespace

std::vector<std::string> PlannedPaths(const std::string& result) {
  StatusOr<JsonMembers> manifest = MembersOfJson(result, kStreamPlan);
  if (manifest.ok() && manifest->contains("manifest")) {
    manifest = MembersOfJson(manifest->find("manifest")->second, kStreamPlan);
  }
  if (!manifest.ok() || !manifest->contains("root") || !manifest->contains("images")) return {};
  const StatusOr<Json> root = ParseJson(manifest->find("root")->second, kStreamPlan);
  const auto images = ElementsOfJson(manifest->find("images")->second, kStreamPlan);
  if (!root.ok() || !root->is_string() || !images.ok()) return {};
  std::vector<std::string> paths;
  for (const std::string_view image : *images) {
    const StatusOr<Json> path = ParseJson(image, kStreamPlan);
    const bool is_path = path.ok() && path->is_string();
    paths.push_back(is_path ? root->get<std::string>() + path->get<std::string>() : "an image");
  }
  return paths;
}

results::SkippedImages SkippedImagesOf(const Json& plan) {
  const Json skipped = plan.is_object() ? plan.value("skipped", Json()) : Json();
  return FromJson<results::SkippedImages>(skipped, "stream plan")
      .value_or(results::SkippedImages{});
}

Status NamePaths(const Status& status, const std::vector<std::string>& datasets,
                 const std::vector<std::string>& images) {
  if (status.ok()) return status;
  JobNames names;
  names.stores = datasets;
  names.images = images;
  if (OutcomeOf(status).subject.kind == SubjectKind::kImage && images.empty()) {
    return WithAdvice(status, "`patchbay config check` of this run config names the image");
  }
  return Named(status, names);
}

}  // namespace patchbay::client

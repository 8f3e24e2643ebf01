#include "runtime/client/stream_paths.h"

#include <algorithm>
#include <utility>

#include "runtime/client/paths.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"

namespace patchbay::client {
std::vector<std::string> PlannedPaths(const std::string& result) {
  const StatusOr<Json> plan = ParseJson(result, "stream plan");
  if (!plan.ok() || !plan->is_object()) return {};
  const Json& manifest = plan->contains("manifest") ? (*plan)["manifest"] : *plan;
  const StatusOr<std::string> root = JsonString(manifest, "root", "stream plan");
  if (!root.ok() || !manifest.contains("images") || !manifest["images"].is_array()) return {};
  std::vector<std::string> paths;
  for (const Json& path : manifest["images"]) {
    paths.push_back(path.is_string() ? *root + path.get<std::string>() : "an image");
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

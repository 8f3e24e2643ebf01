#include "runtime/cli/stream_paths.h"

#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/cli/paths.h"

namespace patchbay::cli {
std::vector<std::string> PlannedPaths(const std::string& result) {
  const StatusOr<Json> plan = ParseJson(result, "stream plan");
  if (!plan.ok() || !plan->is_object() || !plan->contains("manifest")) return {};
  const Json& manifest = (*plan)["manifest"];
  const StatusOr<std::string> root = JsonString(manifest, "root", "stream plan");
  if (!root.ok() || !manifest.contains("images") || !manifest["images"].is_array()) return {};
  std::vector<std::string> paths;
  for (const Json& path : manifest["images"]) {
    paths.push_back(path.is_string() ? *root + path.get<std::string>() : "an image");
  }
  return paths;
}

Status NamePaths(const Status& status, const std::vector<std::string>& datasets,
                 const std::vector<std::string>& images) {
  if (status.ok()) return status;
  std::string text(MessageOf(status));
  (void)NameNumbered(text, "dataset", datasets);
  if (NameNumbered(text, "image", images) && images.empty()) {
    text += " (`patchbay config check` of this run config names the image)";
  }
  return Status(status.code(), text);
}

}  // namespace patchbay::cli

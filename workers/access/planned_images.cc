#include "workers/access/planned_images.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/plan/planned_manifest.h"

namespace patchbay::workers {
StatusOr<PlannedImages> PlannedImagesOf(const Json& manifest, std::size_t count) {
  PB_ASSIGN_OR_RETURN(auto read, FromJson<plan::PlannedManifest>(manifest, "stream manifest"));
  PlannedImages images{read.Paths(), std::move(read.stamps)};
  if (images.paths.size() != count || images.stamps.size() != count) {
    return InvalidArgument("stream manifest: its images do not match the plan");
  }
  return images;
}

StatusOr<std::vector<std::string>> ManifestPaths(const Json& manifest, const char* key) {
  PB_ASSIGN_OR_RETURN(const Json* list, JsonMember(manifest, key, "manifest"));
  std::vector<std::string> paths;
  if (!list->is_array()) return InvalidArgument("manifest: key '", key, "': expected a list");
  for (const Json& path : *list) {
    if (!path.is_string()) return InvalidArgument("manifest: key '", key, "': expected paths");
    paths.push_back(path.get<std::string>());
  }
  return paths;
}

}  // namespace patchbay::workers

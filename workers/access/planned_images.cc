#include "workers/access/planned_images.h"

#include <algorithm>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// The folder all paths lie in, without a slash at its end ("" for the file system's root).
std::string SharedFolder(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  std::string root = paths.front();
  for (const std::string& path : paths) {
    const auto end = std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first;
    root.erase(end, root.end());
  }
  // The common prefix may end within a name, or be the whole path of the only image.
  const std::size_t slash = root.rfind('/');
  return slash == std::string::npos ? "" : root.substr(0, slash);
}

}  // namespace

Json PathsToJson(const std::vector<std::string>& paths) {
  const std::string root = SharedFolder(paths);
  Json below = Json::array();
  for (const std::string& path : paths) below.push_back(path.substr(root.size() + 1));
  return {{"root", root + "/"}, {"images", std::move(below)}};
}

StatusOr<std::vector<std::string>> PathsFromJson(const Json& value) {
  PB_ASSIGN_OR_RETURN(const std::string root, JsonString(value, "root", "stream manifest"));
  PB_ASSIGN_OR_RETURN(std::vector<std::string> paths, ManifestPaths(value, "images"));
  for (std::string& path : paths) path.insert(0, root);
  return paths;
}

Json ToManifest(const PlannedImages& images) {
  Json manifest = PathsToJson(images.paths);
  manifest["stamps"] = images.stamps;
  return manifest;
}

StatusOr<PlannedImages> PlannedImagesOf(const Json& manifest, std::size_t count) {
  PlannedImages images;
  PB_ASSIGN_OR_RETURN(images.paths, PathsFromJson(manifest));
  PB_ASSIGN_OR_RETURN(images.stamps, ManifestPaths(manifest, "stamps"));
  if (images.paths.size() != count || images.stamps.size() != count) {
    return absl::InvalidArgumentError("stream manifest: its images are not those of the plan");
  }
  return images;
}

StatusOr<std::vector<std::string>> ManifestPaths(const Json& manifest, const char* key) {
  PB_ASSIGN_OR_RETURN(const Json* list, JsonMember(manifest, key, "manifest"));
  std::vector<std::string> paths;
  if (!list->is_array()) {
    return absl::InvalidArgumentError(StrCat("manifest: key '", key, "': expected a list"));
  }
  for (const Json& path : *list) {
    if (!path.is_string()) {
      return absl::InvalidArgumentError(StrCat("manifest: key '", key, "': expected paths"));
    }
    paths.push_back(path.get<std::string>());
  }
  return paths;
}

}  // namespace patchbay::workers

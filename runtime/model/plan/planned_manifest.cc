#include "runtime/model/plan/planned_manifest.h"

#include <algorithm>
#include <utility>

namespace patchbay::plan {

std::string SharedFolder(const std::vector<std::string>& paths) {
  std::string root = paths.empty() ? "" : paths.front();
  for (const std::string& path : paths) {
    root.erase(std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first, root.end());
  }
  // The common prefix may end within a name, or be the whole path of the only image.
  return root.substr(0, root.rfind('/') + 1);
}

std::vector<std::string> PathsBelow(const std::string& root, std::vector<std::string> paths) {
  for (std::string& path : paths) path.erase(0, root.size());
  return paths;
}

PlannedManifest PlannedManifest::Of(const std::vector<std::string>& paths,
                                    std::vector<std::string> stamps) {
  std::string root = SharedFolder(paths);
  std::vector<std::string> images = PathsBelow(root, paths);
  return {.root = std::move(root), .images = std::move(images), .stamps = std::move(stamps)};
}

std::vector<std::string> PlannedManifest::Paths() const {
  std::vector<std::string> paths = images;
  for (std::string& path : paths) path.insert(0, root);
  return paths;
}

}  // namespace patchbay::plan

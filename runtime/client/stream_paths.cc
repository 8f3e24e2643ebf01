#include "runtime/client/stream_paths.h"

#include <algorithm>
#include <utility>

#include "runtime/client/paths.h"
#include "runtime/core/strings.h"

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

namespace {

/// [[path, reason], ...]
std::vector<SkippedImage> NamedImages(const Json& value, const char* member) {
  std::vector<SkippedImage> named;
  const StatusOr<const Json*> rows = JsonMember(value, member, "stream plan");
  if (!rows.ok() || !(*rows)->is_array()) return named;
  for (const Json& row : **rows) {
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_string()) continue;
    named.push_back({row[0].get<std::string>(), row[1].get<std::string>()});
  }
  return named;
}

}  // namespace

Skipped SkippedImages(const Json& plan) {
  Skipped skipped;
  const auto found = plan.is_object() ? plan.find("skipped") : plan.end();
  if (!plan.is_object() || found == plan.end()) return skipped;
  const StatusOr<std::int64_t> count = JsonInt(*found, "count", "stream plan");
  if (count.ok() && *count > 0) skipped.count = static_cast<std::uint64_t>(*count);
  skipped.images = NamedImages(*found, "images");
  skipped.without_stain = NamedImages(*found, "without_stain");
  skipped.without_icc = NamedImages(*found, "without_icc");
  skipped.mpp_corrected = NamedImages(*found, "mpp_corrected");
  Json skipped_files = found->is_object() ? found->value("skipped_files", Json()) : Json();
  if (skipped_files.is_object()) skipped.files = std::move(skipped_files);
  return skipped;
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

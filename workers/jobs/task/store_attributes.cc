#include "workers/jobs/task/store_attributes.h"

#include "runtime/core/strings.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/os/file.h"

namespace patchbay::workers {

Json PatchbayAttributes(const Folders& allowed, const std::string& store) {
  const auto text = ReadFile(allowed, StrCat(store, "/zarr.json"), zarr::kMaxMetadataBytes);
  if (!text.ok()) return Json::object();
  const auto root = ParseJson(*text, "zarr.json");
  if (!root.ok() || !root->is_object()) return Json::object();
  const Json attributes = root->value("attributes", Json::object());
  if (!attributes.is_object()) return Json::object();
  const Json ours = attributes.value("patchbay", Json::object());
  return ours.is_object() ? ours : Json::object();
}

std::string SourceDigestOf(const Folders& allowed, const std::string& store) {
  const Json attributes = PatchbayAttributes(allowed, store);
  const auto found = attributes.find("source_sha256");
  return found != attributes.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace patchbay::workers

#include "runtime/format/zarr/store_root.h"

#include "runtime/core/strings.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {

bool IsStore(const Folders& allowed, const std::string& folder) {
  for (const char* name : {"zarr.json", ".zgroup", ".zarray"}) {
    if (Exists(allowed, StrCat(folder, "/", name), false)) return true;
  }
  return false;
}

Json OwnAttributes(const Folders& allowed, const std::string& store) {
  const auto root = ReadGroupMetadata(allowed, store);
  return root.ok() ? OwnAttributes(*root) : Json::object();
}

const Json& OwnAttributes(const GroupMetadata& root) {
  static const Json none = Json::object();
  const auto own = root.attributes.find("patchbay");
  return own != root.attributes.end() && own->is_object() ? *own : none;
}

std::string SourceDigestOf(const Folders& allowed, const std::string& store) {
  const Json source = OwnAttributes(allowed, store).value("source_sha256", Json());
  return source.is_string() ? source.get<std::string>() : "";
}

}  // namespace patchbay::zarr

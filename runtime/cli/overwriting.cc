#include "runtime/cli/overwriting.h"

#include <filesystem>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"

namespace patchbay::cli {

Argument ForceArgument(bool& force) {
  return {"--force", "", "replace the file if it exists", &force};
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

Status CheckOutsideStores(std::string_view doing, const std::string& path,
                          const std::string& typed) {
  std::string store;  // the outermost: the levels of one are arrays, which look like stores
  for (std::filesystem::path at = path; at != at.parent_path(); at = at.parent_path()) {
    if (zarr::IsStore(Folders::OfThisUser(), at.string())) store = at.string();
  }
  if (store.empty()) return absl::OkStatus();
  return FailedPrecondition(doing, ": ", typed, ": it is or lies in the store ", store,
                            ", which other files would damage; give a path outside of it");
}

Status CheckNothingThere(std::string_view doing, const std::string& path, const std::string& typed,
                         bool force) {
  PB_RETURN_IF_ERROR(CheckOutsideStores(doing, path, typed));
  if (force || !IsThere(path)) return absl::OkStatus();
  return AlreadyExists(doing, ": ", typed,
                       ": it exists; give another name, or --force to replace it");
}

}  // namespace patchbay::cli

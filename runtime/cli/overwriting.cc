#include "runtime/cli/overwriting.h"

#include <filesystem>

#include "runtime/base/strings.h"

namespace patchbay::cli {

Argument ForceArgument(bool& force) {
  return {"--force", "", "replace the file if it exists", &force};
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

Status CheckNothingThere(std::string_view doing, const std::string& path, const std::string& typed,
                         bool force) {
  if (force || !IsThere(path)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      StrCat(doing, ": ", typed, ": it exists; give another name, or --force to replace it"));
}

}  // namespace patchbay::cli

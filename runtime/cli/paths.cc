#include "runtime/cli/paths.h"

#include <filesystem>

#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

StatusOr<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return FromErrno("find path", path, error.value());
  std::string text = absolute.string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool IsStore(const std::string& path) {
  std::error_code error;
  for (const char* name : {"zarr.json", ".zgroup", ".zarray", ".zattrs"}) {
    if (fs::is_regular_file(fs::path(path) / name, error)) return true;
  }
  return false;
}

}  // namespace patchbay::cli

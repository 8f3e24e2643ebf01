#include "runtime/cli/stores_in.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;

bool IsNode(const fs::path& folder) {
  std::error_code error;
  const auto has = [&](const char* name) { return fs::exists(folder / name, error); };
  return has("zarr.json") || has(".zgroup") || has(".zarray");
}

Status Search(const fs::path& folder, int depth, std::vector<std::string>& found) {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(
        StrCat("find stores: ", folder.string(), ": nested deeper than ", kMaxDepth));
  }
  std::error_code error;
  std::vector<fs::path> folders;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool is_hidden = it->path().filename().string().starts_with('.');
    const bool is_folder = it->symlink_status(ignored).type() == fs::file_type::directory;
    if (is_folder && !is_hidden) folders.push_back(it->path());
  }
  if (error) return FromErrno("find stores", folder.string(), error.value());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& below : folders) {
    if (IsNode(below)) {
      found.push_back(below.string());
    } else {
      PB_RETURN_IF_ERROR(Search(below, depth + 1, found));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> StoresIn(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || IsNode(path)) return std::vector<std::string>{path};
  std::vector<std::string> found;
  PB_RETURN_IF_ERROR(Search(path, 0, found));
  if (found.empty()) found.push_back(path);
  return found;
}

}  // namespace patchbay::cli

#include "runtime/cli/stores/stores_in.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;

/// Contents of a folder and the folders in it.
struct Found {
  std::vector<std::string> stores;
  FilesByKind passed_over;
};

Status Search(const fs::path& folder, int depth, Found& found) {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(
        StrCat("find stores: ", folder.string(), ": nested deeper than ", kMaxDepth));
  }
  std::error_code error;
  std::vector<fs::path> folders;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (name.starts_with('.')) continue;
    const bool is_folder = it->symlink_status(ignored).type() == fs::file_type::directory;
    if (is_folder) folders.push_back(it->path());
    const bool is_other = !is_folder && !it->is_directory(ignored) && !IsTableOfJobs(name);
    if (is_other) ++found.passed_over[KindOfFile(name)];
  }
  if (error) return FromErrno("find stores", folder.string(), error.value());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& below : folders) {
    if (zarr::IsStore(below.string())) {
      found.stores.push_back(below.string());
    } else {
      PB_RETURN_IF_ERROR(Search(below, depth + 1, found));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> StoresIn(const std::string& path, FilesByKind& passed_over) {
  std::error_code error;
  if (!fs::is_directory(path, error) || zarr::IsStore(path)) return std::vector<std::string>{path};
  Found found;
  PB_RETURN_IF_ERROR(Search(path, 0, found));
  for (const auto& [kind, files] : found.passed_over) passed_over[kind] += files;
  if (found.stores.empty()) found.stores.push_back(path);
  return found.stores;
}

}  // namespace patchbay::cli

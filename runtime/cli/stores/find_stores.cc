#include "runtime/cli/stores/find_stores.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;

/// Contents of a folder and the folders in it.
struct Found {
  std::vector<std::string> stores;
  FilesByKind skipped_files;
};

Status Search(const fs::path& folder, int depth, Found& found) {
  if (depth > kMaxDepth) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "find stores", folder.string(),
                      StrCat("nested deeper than ", kMaxDepth));
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
    if (is_other) ++found.skipped_files[KindOfFile(name)];
  }
  if (error) return FromErrno("find stores", folder.string(), error.value());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& below : folders) {
    if (zarr::IsStore(Folders::OfThisUser(), below.string())) {
      found.stores.push_back(below.string());
    } else {
      PB_RETURN_IF_ERROR(Search(below, depth + 1, found));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> StoresIn(const std::string& path, FilesByKind& skipped_files) {
  std::error_code error;
  if (!fs::is_directory(path, error) || zarr::IsStore(Folders::OfThisUser(), path))
    return std::vector<std::string>{path};
  Found found;
  PB_RETURN_IF_ERROR(Search(path, 0, found));
  for (const auto& [kind, files] : found.skipped_files) skipped_files[kind] += files;
  if (found.stores.empty()) found.stores.push_back(path);
  return found.stores;
}

}  // namespace patchbay::cli

#include "workers/jobs/task/folder_tree.h"

#include <filesystem>
#include <system_error>

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

/// Returns the first error, and goes on after it.
std::error_code Remove(TaskContext& context, const fs::path& path) {
  std::error_code first, error;
  if (fs::is_directory(fs::symlink_status(path, error))) {
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      const std::error_code below = Remove(context, it->path());
      if (!first) first = below;
    }
    if (!first) first = error;
  }
  fs::remove(path, error);
  context.AddProgress();
  return first ? first : error;
}

}  // namespace

Status RemoveTree(TaskContext& context, const std::string& path) {
  const std::error_code error = Remove(context, path);
  if (!error || error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  return FromErrno("remove", path, error.value());
}

std::uint64_t BytesBelow(TaskContext& context, const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    const std::uintmax_t size = it->is_regular_file(ignored) ? it->file_size(ignored) : 0;
    if (!ignored) bytes += size;
    context.AddProgress();
  }
  return bytes;
}

}  // namespace patchbay::workers

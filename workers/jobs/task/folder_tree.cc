#include "workers/jobs/task/folder_tree.h"

#include <filesystem>
#include <system_error>

#include "runtime/os/file_names.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

/// Returns the first error, and continues after it.
Status Remove(TaskContext& context, const fs::path& path) {
  Status first;
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) {
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      const Status below = Remove(context, it->path());
      if (first.ok()) first = below;
    }
    if (first.ok() && error) first = FromErrno("remove", path.string(), error.value());
  }
  const Status removed = RemoveFile(context.allowed, path.string());
  context.AddProgress();
  return first.ok() ? removed : first;
}

}  // namespace

Status RemoveTree(TaskContext& context, const std::string& path) { return Remove(context, path); }

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

std::uint64_t BytesOfFiles(TaskContext& context, const std::vector<std::string>& files) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    if (!error) bytes += size;
    context.AddProgress();
  }
  return bytes;
}

}  // namespace patchbay::workers

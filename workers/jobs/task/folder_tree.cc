#include "workers/jobs/task/folder_tree.h"

#include "runtime/core/strings.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::workers {
namespace {

/// Returns the first error, and continues after it.
Status Remove(TaskContext& context, const std::string& path) {
  Status first;
  if (IsFolder(context.allowed, path, false)) {
    const auto names = ListFolder(context.allowed, path);
    if (!names.ok()) first = Annotate(names.status(), "remove");
    for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
      const Status below = Remove(context, StrCat(path, "/", name));
      if (first.ok()) first = below;
    }
  }
  const Status removed = RemoveFile(context.allowed, path);
  context.AddProgress();
  return first.ok() ? removed : first;
}

}  // namespace

Status RemoveTree(TaskContext& context, const std::string& path) { return Remove(context, path); }

std::uint64_t BytesBelow(TaskContext& context, const std::string& folder) {
  std::uint64_t bytes = 0;
  const auto add = [&](const FolderEntry& entry) -> StatusOr<bool> {
    if (entry.is_file()) bytes += static_cast<std::uint64_t>(entry.st.st_size);
    context.AddProgress();
    return true;
  };
  WalkTree(context.allowed, folder, Links::kOfFiles, add).IgnoreError();
  return bytes;
}

std::uint64_t BytesOfFiles(TaskContext& context, const std::vector<std::string>& files) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    bytes += SizeOf(context.allowed, file).value_or(0);
    context.AddProgress();
  }
  return bytes;
}

}  // namespace patchbay::workers

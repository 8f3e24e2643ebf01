#include "runtime/os/folder_scope.h"

#include <utility>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

/// The only state of this folder that is not a value: opens lie deep below the task that is
/// confined, partly in code that knows no tasks.
thread_local std::shared_ptr<const AllowedFolders> current;

bool IsAround(std::string_view folder, std::string_view path) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string_view Outermost(const std::vector<std::string>& folders, std::string_view path) {
  std::string_view found;
  for (const std::string& folder : folders) {
    const bool is_wider = found.empty() || folder.size() < found.size();
    if (is_wider && IsAround(folder, path)) found = folder;
  }
  return found;
}

}  // namespace

StatusOr<std::string_view> AllowedFolders::Around(std::string_view path, bool is_write) const {
  const std::string_view readable = Outermost(read, path);
  const std::string_view writable = Outermost(write, path);
  if (!is_write) return readable.empty() ? writable : readable;
  if (writable.empty() && !readable.empty()) {
    return absl::PermissionDeniedError(
        StrCat("write: ", path, ": in a folder that may only be read (", readable, ")"));
  }
  return writable;
}

StatusOr<std::string> ConfiningFolder(const std::string& path, bool is_write) {
  if (current == nullptr) return std::string();
  PB_ASSIGN_OR_RETURN(const std::string_view folder, current->Around(path, is_write));
  return folder == "/" ? std::string() : std::string(folder);
}

FolderScope::FolderScope(std::shared_ptr<const AllowedFolders> folders)
    : outer_(std::exchange(current, std::move(folders))) {}

FolderScope::~FolderScope() { current = std::move(outer_); }

std::shared_ptr<const AllowedFolders> FolderScope::Current() { return current; }

}  // namespace patchbay

#include "runtime/os/folders.h"

#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

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

Folders::Folders(Roots roots) : roots_(std::make_shared<const Roots>(std::move(roots))) {}

const Folders& Folders::OfThisUser() {
  static const Folders all(std::shared_ptr<const Roots>{});
  return all;
}

const Folders& Folders::OfThisProcess() { return OfThisUser(); }

StatusOr<std::string_view> Folders::Around(std::string_view path, bool is_write) const {
  if (roots_ == nullptr) return std::string_view();
  const std::string_view readable = Outermost(roots_->read, path);
  const std::string_view writable = Outermost(roots_->write, path);
  if (writable.empty() && readable.empty()) {
    return ErrorAbout(absl::StatusCode::kPermissionDenied, is_write ? "write" : "read", path,
                      "outside the folders that may be used");
  }
  if (is_write && writable.empty()) {
    return ErrorAbout(absl::StatusCode::kPermissionDenied, "write", path,
                      "in a folder that may only be read");
  }
  const std::string_view found = is_write || readable.empty() ? writable : readable;
  return found == "/" ? std::string_view() : found;
}

}  // namespace patchbay

#include "runtime/os/folder_listing.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

using OpenedFolder = std::unique_ptr<DIR, int (*)(DIR*)>;

StatusOr<OpenedFolder> OpenFolder(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(allowed, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  OpenedFolder folder(fdopendir(fd.get()), &closedir);
  if (folder == nullptr) return FromErrno("list", path, errno);
  (void)fd.release();  // the stream closes it
  return folder;
}

/// The entry of a name in an open folder; nothing where it went meanwhile.
StatusOr<std::optional<FolderEntry>> EntryOf(const Folders& allowed, DIR* folder, std::string path,
                                             const char* name, Links links) {
  FolderEntry entry{std::move(path)};
  if (fstatat(dirfd(folder), name, &entry.st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return FromErrno("stat", entry.path, errno);
  }
  if (!S_ISLNK(entry.st.st_mode) || links == Links::kKept) return entry;
  const auto target = StatOf(allowed, entry.path);
  if (absl::IsPermissionDenied(target.status())) return target.status();
  const bool is_shown = target.ok() && (links == Links::kAllFollowed || !S_ISDIR(target->st_mode));
  if (is_shown) entry.st = *target;
  return entry;
}

Status Walk(const Folders& allowed, const std::string& path, int depth, Links links,
            const VisitEntry& visit) {
  PB_ASSIGN_OR_RETURN(const OpenedFolder folder, OpenFolder(allowed, path));
  while (true) {
    errno = 0;
    const dirent* const next = readdir(folder.get());
    if (next == nullptr) return errno == 0 ? absl::OkStatus() : FromErrno("list", path, errno);
    const std::string_view name = next->d_name;
    if (name == "." || name == "..") continue;
    PB_ASSIGN_OR_RETURN(
        auto entry, EntryOf(allowed, folder.get(), StrCat(path, "/", name), next->d_name, links));
    if (!entry) continue;
    entry->depth = depth;
    PB_ASSIGN_OR_RETURN(const bool goes_on, visit(*entry));
    if (goes_on && entry->is_folder()) {
      PB_RETURN_IF_ERROR(Walk(allowed, entry->path, depth + 1, links, visit));
    }
  }
}

/// The path without links, or with the last name as it is; `path` where that cannot be found.
std::string Canonical(const std::string& path, bool follow) {
  const std::size_t last = follow ? path.size() : path.rfind('/');
  const std::unique_ptr<char, decltype(&std::free)> real(
      realpath(path.substr(0, last).c_str(), nullptr), &std::free);
  return real == nullptr ? path : StrCat(real.get(), path.substr(last));
}

}  // namespace

StatusOr<struct stat> StatOf(const Folders& allowed, const std::string& path, bool follow) {
  PB_ASSIGN_OR_RETURN(const std::string_view confined, allowed.Around(path, false));
  struct stat st {};
  if (confined.empty()) {
    const int failed = follow ? stat(path.c_str(), &st) : lstat(path.c_str(), &st);
    if (failed != 0) return FromErrno("stat", path, errno);
    return st;
  }
  StatusOr<UniqueFd> fd = OpenFile(allowed, path, O_PATH | (follow ? 0 : O_NOFOLLOW));
  if (absl::IsPermissionDenied(fd.status())) {
    auto target = OpenFile(allowed, Canonical(path, follow), O_PATH | O_NOFOLLOW);
    if (target.ok()) fd = std::move(target);
  }
  PB_RETURN_IF_ERROR(fd.status());
  if (fstat(fd->get(), &st) != 0) return FromErrno("stat", path, errno);
  return st;
}

bool Exists(const Folders& allowed, const std::string& path, bool follow) {
  return StatOf(allowed, path, follow).ok();
}

bool IsFolder(const Folders& allowed, const std::string& path, bool follow) {
  const auto st = StatOf(allowed, path, follow);
  return st.ok() && S_ISDIR(st->st_mode);
}

bool IsRegularFile(const Folders& allowed, const std::string& path) {
  return SizeOf(allowed, path).ok();
}

StatusOr<std::uint64_t> SizeOf(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const struct stat st, StatOf(allowed, path));
  if (S_ISREG(st.st_mode)) return static_cast<std::uint64_t>(st.st_size);
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "stat", path, "not a file");
}

std::optional<FileIdentity> IdentityAt(const Folders& allowed, const std::string& path) {
  const auto st = StatOf(allowed, path);
  return st.ok() ? std::optional(IdentityOf(*st)) : std::nullopt;
}

StatusOr<std::vector<std::string>> ListFolder(const Folders& allowed, const std::string& path,
                                              std::size_t most) {
  PB_ASSIGN_OR_RETURN(const OpenedFolder folder, OpenFolder(allowed, path));
  std::vector<std::string> names;
  while (names.size() < most) {
    errno = 0;
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr && errno != 0) return FromErrno("list", path, errno);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status WalkTree(const Folders& allowed, const std::string& folder, Links links,
                const VisitEntry& visit) {
  return Walk(allowed, folder, 0, links, visit);
}

}  // namespace patchbay

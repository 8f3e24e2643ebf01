#include "runtime/os/file_sharing.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"

namespace patchbay {
namespace {

constexpr char kDoing[] = "share files";
constexpr unsigned kMaxMode = 0777;

bool IsMember(gid_t group) {
  if (geteuid() == 0 || getegid() == group) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
  const int got = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(got, 0)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

/// Folders get search for whoever may read, and pass their group on.
unsigned ModeOf(const struct stat& st, unsigned mode) {
  return S_ISDIR(st.st_mode) ? mode | ((mode & 0444u) >> 2) | S_ISGID : mode;
}

/// The folder may be others' to write as well, who may put anything there under any name: a file
/// that this account owns, under this name alone, is one that it made there.
Status ShareOne(const Folders& allowed, const std::string& path, const FileSharing& sharing,
                bool keeps_group) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd,
                      OpenFile(allowed, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  const bool is_plain = S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink == 1);
  if (st.st_uid != geteuid() || !is_plain) return absl::OkStatus();
  if (!keeps_group && st.st_gid != sharing.group &&
      fchown(fd.get(), static_cast<uid_t>(-1), sharing.group) != 0) {
    return FromErrno(kDoing, path, errno);
  }
  const unsigned mode = ModeOf(st, sharing.mode);
  if ((st.st_mode & 07777u) == mode || fchmod(fd.get(), mode) == 0) return absl::OkStatus();
  return FromErrno(kDoing, path, errno);
}

}  // namespace

StatusOr<FileSharing> FileSharing::Of(const std::string& group, unsigned mode) {
  const struct group* const found = getgrnam(group.c_str());
  if (found == nullptr) return NotFound(group, ": no such group on this machine");
  if (!IsMember(found->gr_gid)) {
    return PermissionDenied(group, ": this process is no member of the group: add its user, and ",
                            "start it in a new session");
  }
  return FileSharing{found->gr_gid, mode};
}

StatusOr<FileSharing> FileSharing::FromText(const std::string& text) {
  FileSharing sharing;
  const char* const end = text.data() + text.size();
  const auto group = std::from_chars(text.data(), end, sharing.group);
  if (group.ec == std::errc() && group.ptr != end && *group.ptr == ':') {
    const auto mode = std::from_chars(group.ptr + 1, end, sharing.mode, 8);
    if (mode.ec == std::errc() && mode.ptr == end && sharing.mode <= kMaxMode) return sharing;
  }
  return InvalidArgument("'", text, "' is no group and mode");
}

std::string FileSharing::Text() const {
  const std::string digits = {static_cast<char>('0' + (mode >> 6)),
                              static_cast<char>('0' + (mode >> 3 & 7u)),
                              static_cast<char>('0' + (mode & 7u))};
  return StrCat(group, ":", digits);
}

Status ShareFiles(const Folders& allowed, const std::string& path,
                  const std::optional<FileSharing>& sharing) {
  if (!sharing || !Exists(allowed, path, false)) return absl::OkStatus();
  const std::string parent = std::filesystem::path(path).parent_path().string();
  PB_ASSIGN_OR_RETURN(const struct stat above, StatOf(allowed, parent));
  const bool keeps_group = (above.st_mode & S_ISGID) != 0;
  PB_RETURN_IF_ERROR(ShareOne(allowed, path, *sharing, keeps_group));
  PB_ASSIGN_OR_RETURN(const struct stat st, StatOf(allowed, path, false));
  if (!S_ISDIR(st.st_mode)) return absl::OkStatus();
  return WalkTree(allowed, path, Links::kKept, [&](const FolderEntry& entry) -> StatusOr<bool> {
    PB_RETURN_IF_ERROR(ShareOne(allowed, entry.path, *sharing, keeps_group));
    return true;
  });
}

}  // namespace patchbay

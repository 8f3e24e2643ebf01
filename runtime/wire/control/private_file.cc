#include "runtime/wire/control/private_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "runtime/os/file.h"

namespace patchbay::control {
namespace {

constexpr std::uint32_t kNfsMagic = 0x6969, kSmbMagic = 0x517B, kCifsMagic = 0xFF534D42,
                        kSmb2Magic = 0xFE534D42;

Status CheckOwner(const struct stat& status, std::string_view path) {
  if (status.st_uid == geteuid() || status.st_uid == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(StrCat("open: ", path, ": it belongs to another user"));
}

}  // namespace

StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd,
                      OpenFile(Folders::OfThisProcess(), path, O_RDONLY | O_NONBLOCK));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(StrCat("read key file: ", path, ": not a regular file"));
  }
  PB_RETURN_IF_ERROR(CheckOwner(status, path));
  const bool anonymous = status.st_nlink == 0;
  if (!anonymous && (status.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        StrCat("read key file: ", path, ": readable by others; chmod 600 it"));
  }
  if (status.st_size > static_cast<off_t>(kMaxKeyFileBytes)) {
    return absl::InvalidArgumentError(StrCat("read key file: ", path, ": too large for a key"));
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  PB_RETURN_IF_ERROR(
      ReadAt(fd.get(), 0, std::as_writable_bytes(std::span(text.data(), text.size())), path));
  return text;
}

Status CheckPrivateFolder(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return FromErrno("open", path, errno);
  if (!S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(StrCat("open: ", path, ": not a folder"));
  }
  PB_RETURN_IF_ERROR(CheckOwner(status, path));
  if ((status.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        StrCat("open: ", path, ": others may enter it; chmod 700 it"));
  }
  return absl::OkStatus();
}

Status CheckLocalFolder(const std::string& path) {
  struct statfs status;
  if (statfs(path.c_str(), &status) != 0) return FromErrno("statfs", path, errno);
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case kNfsMagic:
    case kSmbMagic:
    case kCifsMagic:
    case kSmb2Magic:
      return absl::FailedPreconditionError(
          StrCat("open: ", path, ": keys may not lie on a network file system"));
    default:
      return absl::OkStatus();
  }
}

}  // namespace patchbay::control

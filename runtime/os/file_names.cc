#include "runtime/os/file_names.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/confined_open.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"

namespace patchbay {
namespace {

/// A name in its folder, as the *at functions take it.
struct NameInFolder {
  UniqueFd fd;       ///< none where nothing confines it
  std::string name;  ///< the whole path then

  int folder() const { return fd.valid() ? fd.get() : AT_FDCWD; }
  /// For functions that know paths alone.
  std::string path() const {
    return fd.valid() ? StrCat("/proc/self/fd/", fd.get(), "/", name) : name;
  }
};

/// `path` to be made, renamed or removed.
StatusOr<NameInFolder> OpenNameToWrite(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string_view folder, allowed.Around(path, true));
  if (folder.empty() || path.size() <= folder.size()) return NameInFolder{UniqueFd(), path};
  const std::size_t end = path.find_last_not_of('/') + 1;
  const std::size_t slash = path.rfind('/', end - 1);
  NameInFolder found;
  PB_ASSIGN_OR_RETURN(
      found.fd, OpenConfined(std::string(folder), path.substr(0, std::max(slash, folder.size())),
                             O_PATH | O_DIRECTORY, 0));
  found.name = path.substr(slash + 1, end - slash - 1);
  return found;
}

}  // namespace

Status MakeDirectory(const Folders& allowed, const std::string& path, unsigned mode) {
  PB_ASSIGN_OR_RETURN(const NameInFolder made, OpenNameToWrite(allowed, path));
  if (mkdirat(made.folder(), made.name.c_str(), mode) == 0) return absl::OkStatus();
  return FromErrno("mkdir", path, errno);
}

Status RenameFile(const Folders& allowed, const std::string& from, const std::string& to) {
  PB_ASSIGN_OR_RETURN(const NameInFolder source, OpenNameToWrite(allowed, from));
  PB_ASSIGN_OR_RETURN(const NameInFolder target, OpenNameToWrite(allowed, to));
  if (renameat(source.folder(), source.name.c_str(), target.folder(), target.name.c_str()) == 0) {
    return absl::OkStatus();
  }
  return FromErrno("rename", to, errno);
}

Status RenameUnlessTaken(const Folders& allowed, const std::string& from, const std::string& to) {
  PB_ASSIGN_OR_RETURN(const NameInFolder source, OpenNameToWrite(allowed, from));
  PB_ASSIGN_OR_RETURN(const NameInFolder target, OpenNameToWrite(allowed, to));
  // The kernel refuses a taken name in the same step, so no other process can take it in between.
  if (renameat2(source.folder(), source.name.c_str(), target.folder(), target.name.c_str(),
                RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINVAL) return FromErrno("rename", to, errno);
  // A file system without the flag: rename still refuses a folder that is not empty.
  return RenameFile(allowed, from, to);
}

Status RemoveFile(const Folders& allowed, const std::string& path) {
  const StatusOr<NameInFolder> found = OpenNameToWrite(allowed, path);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  if (!found.ok()) return found.status();
  const char* name = found->name.c_str();
  if (unlinkat(found->folder(), name, 0) == 0 || errno == ENOENT) return absl::OkStatus();
  const bool is_folder = errno == EISDIR || errno == EPERM;
  if (is_folder && unlinkat(found->folder(), name, AT_REMOVEDIR) == 0) return absl::OkStatus();
  return FromErrno("remove", path, errno);
}

Status RemoveTree(const Folders& allowed, const std::string& path) {
  const StatusOr<NameInFolder> found = OpenNameToWrite(allowed, path);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  if (!found.ok()) return found.status();
  std::error_code error;
  std::filesystem::remove_all(found->path(), error);
  return error ? FromErrno("remove", path, error.value()) : absl::OkStatus();
}

}  // namespace patchbay

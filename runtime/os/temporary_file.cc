#include "runtime/os/temporary_file.h"

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file_names.h"

namespace patchbay {
namespace {

/// Whether `path` names the file or folder that is open.
bool IsNamed(const Folders& allowed, const std::string& path, const UniqueFd& file) {
  const auto named = OpenFile(allowed, path, O_PATH | O_NOFOLLOW);
  struct stat here {
  }, there{};
  return named.ok() && fstat(file.get(), &here) == 0 && fstat(named->get(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

bool LockNow(const UniqueFd& file) { return flock(file.get(), LOCK_EX | LOCK_NB) == 0; }

/// Removes a file that somebody who ended before its renaming left.
void RemoveAbandoned(const Folders& allowed, const std::string& path) {
  const auto left = OpenFile(allowed, path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat st {};
  const bool is_own = left.ok() && fstat(left->get(), &st) == 0 && S_ISREG(st.st_mode) &&
                      st.st_uid == geteuid() && st.st_nlink == 1;
  if (!is_own || !LockNow(*left)) return;
  if (IsNamed(allowed, path, *left)) RemoveFile(allowed, path).IgnoreError();
}

/// A new file; AlreadyExists when the name is taken. Other errors name `path`.
StatusOr<TemporaryFile> Create(const Folders& allowed, std::string name, const std::string& path,
                               unsigned mode) {
  auto opened = OpenFile(allowed, name, O_RDWR | O_CREAT | O_EXCL, mode);
  if (opened.ok()) return TemporaryFile{*std::move(opened), std::move(name)};
  if (absl::IsNotFound(opened.status())) {
    return ErrorAbout(absl::StatusCode::kNotFound, "write", path, "there is no such folder");
  }
  return ErrorAbout(opened.status().code(), "write", path, OutcomeOf(opened.status()).cause);
}

}  // namespace

StatusOr<TemporaryFile> CreateBeside(const Folders& allowed, const std::string& path,
                                     std::string_view suffix, unsigned mode) {
  const std::string name = StrCat(path, suffix);
  auto file = Create(allowed, name, path, mode);
  if (absl::IsAlreadyExists(file.status())) {
    RemoveAbandoned(allowed, name);
    file = Create(allowed, name, path, mode);
  }
  if (!file.ok() && !absl::IsAlreadyExists(file.status())) return file;
  // Another may have taken it for abandoned before it was locked: that one removes it.
  const bool taken = !file.ok() || (!LockNow(file->fd) && errno == EWOULDBLOCK);
  if (!taken && IsNamed(allowed, name, file->fd)) return file;
  return Create(allowed, StrCat(path, ".", Hex64(RandomU64()), suffix), path, mode);
}

StatusOr<PartialFolder> PartialFolder::Make(const Folders& allowed, const std::string& path) {
  PartialFolder folder(allowed, path + ".partial");
  PB_RETURN_IF_ERROR(MakeDirectories(allowed, folder.path_));
  PB_ASSIGN_OR_RETURN(UniqueFd fd,
                      OpenFile(allowed, folder.path_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  const bool is_taken = !LockNow(fd) && errno == EWOULDBLOCK;
  if (is_taken || !IsNamed(allowed, folder.path_, fd)) {  // or has just become `path`
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "write", path,
                      "another process is making it");
  }
  folder.fd_ = std::move(fd);
  std::error_code error;
  for (std::filesystem::directory_iterator left(folder.path_, error), end; !error && left != end;
       left.increment(error)) {
    PB_RETURN_IF_ERROR(RemoveTree(allowed, left->path().string()));
  }
  return folder;
}

PartialFolder::~PartialFolder() {
  if (fd_.valid() && IsNamed(allowed_, path_, fd_)) RemoveTree(allowed_, path_).IgnoreError();
}

}  // namespace patchbay

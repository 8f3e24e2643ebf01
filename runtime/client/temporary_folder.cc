#include "runtime/client/temporary_folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

constexpr int kMaxAttempts = 40;
constexpr int kRemovePauseMs = 50;

std::string NamePrefix() { return StrCat("patchbay-", getuid(), "-"); }

bool IsOwnFolder(const std::string& path) {
  struct stat entry {};
  return lstat(path.c_str(), &entry) == 0 && S_ISDIR(entry.st_mode) && entry.st_uid == getuid();
}

/// The lock of a folder, or nothing while another process holds it. Its maker alone passes O_CREAT.
UniqueFd TryLock(const std::string& folder, int flags) {
  flags |= O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd lock(open((folder + "/lock").c_str(), flags, 0600));
  if (lock.valid() && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.Close();
  struct stat entry {};  // removed between the two calls, with its folder
  if (lock.valid() && (fstat(lock.get(), &entry) != 0 || entry.st_nlink == 0)) lock.Close();
  return lock;
}

/// The folders in `parent` that have the name of our temporary folders.
std::vector<std::string> OwnFolders(const std::string& parent) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().rfind(NamePrefix(), 0) == 0 && IsOwnFolder(path)) {
      folders.push_back(path);
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Checks without making the file, and releases the lock at once.
bool IsFolderHeld(const std::string& folder) {
  const UniqueFd lock(open((folder + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return lock.valid() && flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

/// The lock goes last: a folder without one is empty, just made or all but removed.
void RemoveAllButLock(const std::string& path) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    std::error_code ignored;
    if (entry.path().filename() != "lock") std::filesystem::remove_all(entry.path(), ignored);
  }
}

void RemoveAbandoned(const std::string& parent) {
  for (const std::string& path : OwnFolders(parent)) {
    const UniqueFd lock = TryLock(path, 0);
    if (lock.valid()) {
      RemoveAllButLock(path);
      unlink((path + "/lock").c_str());
    }
    rmdir(path.c_str());  // fails for one in use
  }
}

}  // namespace

StatusOr<TemporaryFolder> TemporaryFolder::Create(const std::string& parent) {
  RemoveAbandoned(parent);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::string path = StrCat(parent, "/", NamePrefix(), "XXXXXX");
    if (mkdtemp(path.data()) == nullptr) return FromErrno("make a private folder", parent, errno);
    // Another command may have taken the folder for an abandoned one before it was locked.
    UniqueFd lock = TryLock(path, O_CREAT);
    if (!lock.valid()) continue;
    return TemporaryFolder(std::move(path), std::move(lock));
  }
  return Internal("make a private folder: ", parent, ": cannot lock one");
}

std::vector<std::string> FoldersInUse(const std::string& parent) {
  std::vector<std::string> folders = OwnFolders(parent);
  std::erase_if(folders, [](const std::string& folder) { return !IsFolderHeld(folder); });
  return folders;
}

void RemoveFolder(const std::string& path) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    RemoveAllButLock(path);
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (!error && access(path.c_str(), F_OK) != 0) return;
    poll(nullptr, 0, kRemovePauseMs);
  }
}

}  // namespace patchbay::client

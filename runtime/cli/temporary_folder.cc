#include "runtime/cli/temporary_folder.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

constexpr int kMaxAttempts = 40;
constexpr int kMaxDescriptors = 65'536;
constexpr int kRemovePauseMs = 50;

std::string NamePrefix() { return StrCat("patchbay-", getuid(), "-"); }

bool IsOwnFolder(const std::string& path) {
  struct stat entry {};
  return lstat(path.c_str(), &entry) == 0 && S_ISDIR(entry.st_mode) && entry.st_uid == getuid();
}

/// The lock of a folder, or nothing while another process holds it.
UniqueFd TryLock(const std::string& folder) {
  UniqueFd lock(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.valid() && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.Close();
  return lock;
}

void RemoveAbandoned(const std::string& parent) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().rfind(NamePrefix(), 0) != 0 || !IsOwnFolder(path)) {
      continue;
    }
    const UniqueFd lock = TryLock(path);
    std::error_code ignored;
    if (lock.valid()) std::filesystem::remove_all(path, ignored);
  }
}

/// Processes that are just being killed may still write: tries until it is gone.
void RemoveStubbornly(const std::string& path) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (!error && access(path.c_str(), F_OK) != 0) return;
    poll(nullptr, 0, kRemovePauseMs);
  }
}

/// Every descriptor but standard input, which must include the writing end of the janitor's pipe.
void CloseAllButInput() {
  if (close_range(1, ~0u, 0) == 0) return;
  // Linux before 5.9. The kernel hands out the lowest number that is free: none is near this limit.
  for (int fd = 1; fd < kMaxDescriptors; ++fd) close(fd);
}

/// The janitor: holds nothing of its parent but the pipe that ends with it.
[[noreturn]] void RunJanitor(const std::string& path, int watched) {
  setsid();
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  prctl(PR_SET_NAME, "patchbay-tidy");
  if (watched != 0) dup2(watched, 0);
  CloseAllButInput();
  char byte;
  while (read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  RemoveStubbornly(path);
  _exit(0);
}

}  // namespace

StatusOr<TemporaryFolder> TemporaryFolder::Create(const std::string& parent) {
  RemoveAbandoned(parent);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::string path = StrCat(parent, "/", NamePrefix(), "XXXXXX");
    if (mkdtemp(path.data()) == nullptr) return FromErrno("make a private folder", parent, errno);
    // Another command may have taken the folder for an abandoned one before it was locked.
    UniqueFd lock = TryLock(path);
    if (!lock.valid()) continue;
    TemporaryFolder folder(std::move(path), std::move(lock));
    PB_RETURN_IF_ERROR(folder.StartJanitor());
    return folder;
  }
  return absl::InternalError(StrCat("make a private folder: ", parent, ": cannot lock one"));
}

Status TemporaryFolder::StartJanitor() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FromErrno("watch a private folder", "pipe", errno);
  UniqueFd watched(ends[0]);
  alive_ = UniqueFd(ends[1]);
  janitor_ = fork();
  if (janitor_ < 0) return FromErrno("watch a private folder", "fork", errno);
  if (janitor_ == 0) RunJanitor(path_, watched.get());
  return absl::OkStatus();
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  alive_.Close();
  while (janitor_ > 0 && waitpid(janitor_, nullptr, 0) < 0 && errno == EINTR) {
  }
  // The janitor may have been killed before its time.
  if (access(path_.c_str(), F_OK) == 0) RemoveStubbornly(path_);
}

}  // namespace patchbay::cli

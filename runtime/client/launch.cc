#include "runtime/client/launch.h"

#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/strings.h"

extern char** environ;

namespace patchbay::client {
namespace {

constexpr int kLinkFd = 3, kLockFd = 4, kFirstClosed = 5;
constexpr int kOutOfTheWay = 64;  ///< copies lie above what they become in the child

StatusOr<std::vector<std::string>> LauncherCommand(const NodeSettings& settings,
                                                   const LaunchRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::string launcher,
                      ProgramPath(settings.programs, "patchbay-launcher"));
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> supervisor, SupervisorCommand(settings));
  std::vector<std::string> words = {
      launcher,       "--owner",   StrCat(getpid()),        "--link", StrCat(kLinkFd), "--folder",
      request.folder, "--stop-ms", StrCat(request.stop_ms), "--lock", StrCat(kLockFd)};
  if (!request.share.empty()) {
    for (const std::string& word :
         {std::string("--share"), request.share, std::string("--hello"), request.hello}) {
      words.push_back(word);
    }
  }
  words.emplace_back("--");
  words.insert(words.end(), supervisor.begin(), supervisor.end());
  return words;
}

/// The attributes and file actions of one posix_spawn; frees them.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Descriptors(const std::string& log_file, int link, int lock) {
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, link, kLinkFd);
    posix_spawn_file_actions_adddup2(&actions_, lock, kLockFd);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstClosed);
  }

  void DefaultSignals() {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }

  /// The pid, or -errno.
  pid_t Spawn(const std::vector<std::string>& words) const {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t pid = -1;
    const int error =
        posix_spawn(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
    return error == 0 ? pid : -error;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A copy that what the child's own become does not overwrite.
StatusOr<UniqueFd> OutOfTheWay(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, kOutOfTheWay));
  if (copy.valid()) return copy;
  if (errno != EINVAL && errno != EMFILE) return FromErrno("start launcher", "descriptor", errno);
  return absl::ResourceExhaustedError(
      "start launcher: the limit on open files is too low, or reached: raise it (ulimit -n)");
}

}  // namespace

StatusOr<UniqueFd> LaunchSupervisor(const NodeSettings& settings, const LaunchRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> words, LauncherCommand(settings, request));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return FromErrno("start launcher", "socketpair", errno);
  }
  UniqueFd own(ends[0]);
  const UniqueFd theirs(ends[1]);
  PB_ASSIGN_OR_RETURN(const UniqueFd link, OutOfTheWay(theirs.get()));
  PB_ASSIGN_OR_RETURN(const UniqueFd lock, OutOfTheWay(request.lock_fd));
  SpawnPlan plan;
  plan.Descriptors(request.log_file, link.get(), lock.get());
  plan.DefaultSignals();
  const pid_t pid = plan.Spawn(words);
  if (pid < 0) return FromErrno("start launcher", words[0], -pid);
  // It forks and ends at once. A program that reaps all of its children may have been faster.
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return own;
}

}  // namespace patchbay::client

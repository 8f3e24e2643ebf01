#include "workers/agent/launcher.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/process/child_process.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMostOwners = 256;
constexpr std::size_t kMostReadyBytes = 64 << 10;
constexpr long kReapMs = 5'000;  ///< for a supervisor to kill and reap remaining processes
constexpr int kRemoveAttempts = 40;
constexpr int kPauseMs = 50;

long NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void Say(int fd, const std::string& text) {
  // The other side may be gone: that is seen elsewhere.
  if (!text.empty() && send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

/// The listening socket of that name; -1 with errno set.
int ListenAt(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) return errno = ENAMETOOLONG, -1;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(fd, 64) == 0)
    return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

struct Owner {
  int link = -1;
  OwnerWatch watch;
};

/// Processes that are just being killed may still write: tries until it is gone.
void RemoveFolder(const std::string& folder) {
  for (int attempt = 0; attempt < kRemoveAttempts && !folder.empty(); ++attempt) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      std::error_code ignored;  // the lock goes last: the next command finds what a kill left
      if (entry.path().filename() != "lock") std::filesystem::remove_all(entry.path(), ignored);
    }
    std::filesystem::remove_all(folder, error);
    if (!error && access(folder.c_str(), F_OK) != 0) return;
    poll(nullptr, 0, kPauseMs);
  }
}

class Launcher {
 public:
  Launcher(const LauncherOptions& options, OwnerWatch first) : options_(options) {
    owners_.push_back({options.link_fd, std::move(first)});
  }

  int Run() {
    if (!options_.share.empty()) {
      listener_ = ListenAt(options_.share);
      if (listener_ < 0) {
        Say(options_.link_fd,
            errno == EADDRINUSE ? kTakenLine : "failed launcher: cannot listen\n");
        RemoveFolder(options_.folder);
        return kExitFailed;
      }
    }
    if (!Start()) {
      Say(options_.link_fd, "failed launcher: cannot start the supervisor\n");
    } else {
      while (!owners_.empty() && !supervisor_ended_) WaitForEvent();
    }
    // No further owner can join from here on: one that has just connected sees the end and starts
    // its own cluster.
    if (listener_ >= 0) close(listener_);
    StopAll();
    RemoveFolder(options_.folder);
    return kExitDone;  // and every link ends
  }

 private:
  bool Start() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t watched;
    sigemptyset(&watched);
    for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, s);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    signal_fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    int ends[2];
    if (signal_fd_ < 0 || pipe2(ends, O_CLOEXEC) != 0) return false;
    ready_pipe_ = ends[0];
    ChildOptions start;
    start.arguments = options_.supervisor;
    start.arguments.insert(start.arguments.begin() + 1, {"--ready-fd", std::to_string(ends[1])});
    start.inherit_fd = ends[1];
    supervisor_ = StartChild(start);
    close(ends[1]);
    return supervisor_ > 0;
  }

  void WaitForEvent() {
    std::vector<pollfd> waits = {
        {signal_fd_, POLLIN, 0}, {ready_pipe_, POLLIN, 0}, {listener_, POLLIN, 0}};
    bool must_look = false;
    for (const Owner& owner : owners_) {
      waits.push_back({owner.link, POLLIN, 0});
      waits.push_back({owner.watch.fd(), POLLIN, 0});
      must_look = must_look || owner.watch.fd() < 0;
    }
    poll(waits.data(), waits.size(), must_look ? OwnerWatch::kLookEveryMs : -1);
    ReadSignals();
    if (waits[1].revents != 0) ReadReady();
    if (waits[2].revents != 0) Accept();
    for (std::size_t i = owners_.size(); i-- > 0;) {
      if (owners_[i].watch.Ended() || Leaves(owners_[i])) RemoveOwner(i);
    }
  }

  void ReadSignals() {
    signalfd_siginfo seen{};
    while (read(signal_fd_, &seen, sizeof(seen)) == sizeof(seen)) {
      if (seen.ssi_signo != SIGCHLD) owners_.clear();
    }
    for (pid_t pid; (pid = waitpid(-1, nullptr, WNOHANG)) > 0;) {
      supervisor_ended_ = supervisor_ended_ || pid == supervisor_;
    }
  }

  /// Passes on the supervisor's lines; later owners receive all of them.
  void ReadReady() {
    char buffer[1024];
    const ssize_t got = read(ready_pipe_, buffer, sizeof(buffer));
    if (got <= 0 || said_.size() > kMostReadyBytes) {
      close(ready_pipe_);
      ready_pipe_ = -1;
      return;
    }
    const std::string piece(buffer, static_cast<std::size_t>(got));
    said_ += piece;
    for (const Owner& owner : owners_) Say(owner.link, piece);
  }

  void Accept() {
    const int link = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (link < 0) return;
    ucred peer{};
    socklen_t length = sizeof(peer);
    const bool known = getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    if (!known || peer.uid != getuid() || peer.pid <= 0 || owners_.size() >= kMostOwners) {
      close(link);
      return;
    }
    Say(link, options_.hello + "\n" + said_);
    owners_.push_back({link, OwnerWatch(peer.pid)});
  }

  /// Whether an owner asked to leave, or closed its end.
  static bool Leaves(const Owner& owner) {
    char byte = 0;
    const ssize_t got = recv(owner.link, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got == 1 && byte == kLeaveByte) ||
           (got < 0 && errno != EAGAIN && errno != EINTR);
  }

  /// The last one keeps its link until nothing is left.
  void RemoveOwner(std::size_t i) {
    if (owners_.size() > 1) {
      Say(owners_[i].link, kLeftLine);
      close(owners_[i].link);
    } else {
      hurry_ = owners_[i].watch.Ended();
    }
    owners_.erase(owners_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  /// An orderly stop for an owner who waits for it; none for the dead.
  void StopAll() {
    const long kill_at = NowMs() + (hurry_ ? 0 : options_.stop_ms);
    if (supervisor_ > 0 && !supervisor_ended_) kill(supervisor_, SIGTERM);
    bool killed = false;
    while (supervisor_ > 0 && !supervisor_ended_) {
      if (NowMs() >= kill_at && !killed) {
        // The second signal makes the supervisor kill and reap remaining processes, and end. It has
        // another number, since two pending signals of one number are merged.
        kill(supervisor_, SIGINT);
        killed = true;
      }
      // The supervisor is frozen; killing it ends all its processes.
      if (NowMs() >= kill_at + kReapMs) kill(supervisor_, SIGKILL);
      pollfd wait{signal_fd_, POLLIN, 0};
      poll(&wait, 1, kPauseMs);
      ReadSignals();
    }
    // Processes that the supervisor did not reap are reparented to its subreaper.
    const long give_up = NowMs() + kReapMs;
    while ((waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD) && NowMs() < give_up) {
      poll(nullptr, 0, 1);
    }
  }

  const LauncherOptions& options_;
  std::vector<Owner> owners_;
  std::string said_;
  int listener_ = -1, signal_fd_ = -1, ready_pipe_ = -1;
  pid_t supervisor_ = 0;
  bool supervisor_ended_ = false;
  bool hurry_ = false;
};

bool ParseNumber(const std::string& text, long& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

}  // namespace

int RunLauncher(const LauncherOptions& options) {
  OwnerWatch watch(options.owner);
  // The watch is bound to the owner only if that was still the parent once it was made.
  if (getppid() != options.owner || watch.Ended()) {
    RemoveFolder(options.folder);
    return kExitFailed;
  }
  const pid_t second = fork();
  if (second < 0) return kExitFailed;
  if (second > 0) _exit(kExitDone);
  setsid();
  signal(SIGPIPE, SIG_IGN);
  for (const int fd : {options.link_fd, options.lock_fd}) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return Launcher(options, std::move(watch)).Run();
}

bool ParseLauncherArguments(const std::vector<std::string>& arguments, LauncherOptions& options,
                            std::string& error) {
  const auto rest = std::find(arguments.begin(), arguments.end(), "--");
  for (auto it = arguments.begin(); it != rest; it += 2) {
    if (it + 1 == rest) return error = *it + " needs a value", false;
    long value = 0;
    const bool number = ParseNumber(it[1], value);
    if (*it == "--folder") {
      options.folder = it[1];
    } else if (*it == "--share") {
      options.share = it[1];
    } else if (*it == "--hello") {
      options.hello = it[1];
    } else if (*it == "--owner" && number) {
      options.owner = static_cast<pid_t>(value);
    } else if (*it == "--link" && number) {
      options.link_fd = static_cast<int>(value);
    } else if (*it == "--lock" && number) {
      options.lock_fd = static_cast<int>(value);
    } else if (*it == "--stop-ms" && number) {
      options.stop_ms = value;
    } else {
      return error = "unexpected '" + *it + " " + it[1] + "'", false;
    }
  }
  if (rest != arguments.end()) options.supervisor.assign(rest + 1, arguments.end());
  if (options.supervisor.empty() || options.owner <= 0 || options.link_fd < 0) {
    error = "expected --owner PID --link N -- SUPERVISOR...";
  }
  return error.empty();
}

}  // namespace patchbay::workers

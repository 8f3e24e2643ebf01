// The real patchbay-scheduler as a child, with its home, keys and state in a folder of its own.
#pragma once

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/os/executable.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "runtime/wire/control/authorized_keys.h"
#include "tests/runtime/wire/control/scratch_folder.h"

namespace patchbay::scheduler {

inline constexpr TimeMs kProcessPatienceMs = 20'000;  ///< for the process to answer

/// One scheduler process at a time over one state folder. Killed when this ends.
class SchedulerProcess {
 public:
  SchedulerProcess() : address_(StrCat("ipc://@patchbay-test-", Hex64(RandomU64()))) {}
  ~SchedulerProcess() { Kill(); }
  SchedulerProcess(const SchedulerProcess&) = delete;
  SchedulerProcess& operator=(const SchedulerProcess&) = delete;

  std::string home_folder() const { return folder_.Path("home"); }
  std::string state_folder() const { return folder_.Path("state"); }
  const std::string& address() const { return address_; }
  void set_address(std::string address) { address_ = std::move(address); }
  /// The cgroup.procs of a control group that it runs in from its next start on.
  void set_group(std::string procs) { group_ = std::move(procs); }
  pid_t pid() const { return pid_; }

  control::Home Home() const { return *control::Home::Open(home_folder()); }

  control::KeyFile NewKey(const std::string& name, control::Role role) const {
    auto key = Home().NewKey(
        {.name = name, .role = role, .address = address_, .read = {"/"}, .write = {"/"}});
    PB_CHECK(key.ok());
    return *std::move(key);
  }

  /// Starts it and waits for its ready line; the exit code instead when it could not start.
  /// errors() has its output on stderr.
  int Start(std::vector<std::string> more = {}) {
    PB_CHECK(pid_ == 0);
    Home().ServerKey().status().IgnoreError();  // made at the first start
    int ready[2];
    PB_CHECK(pipe2(ready, O_CLOEXEC) == 0);
    std::vector<std::string> words = {*SiblingBinary("patchbay-scheduler"),
                                      "--home",
                                      home_folder(),
                                      "--state",
                                      state_folder(),
                                      "--listen",
                                      address_,
                                      "--ready-fd",
                                      StrCat(ready[1])};
    words.insert(words.end(), more.begin(), more.end());
    pid_ = Spawn(words, ready[1]);
    close(ready[1]);
    const UniqueFd from(ready[0]);
    std::string line;
    char buffer[256];
    ssize_t got = 0;
    while (line.find('\n') == std::string::npos &&
           (got = read(from.get(), buffer, sizeof buffer)) > 0) {
      line.append(buffer, static_cast<std::size_t>(got));
    }
    if (line.rfind("ready ", 0) != 0) return Wait();
    address_ = line.substr(6, line.find('\n') - 6);
    return 0;
  }

  /// SIGKILL, as a power cut of the process would be.
  void Kill() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }
  /// SIGTERM; the exit code.
  int Stop() {
    kill(pid_, SIGTERM);
    return Wait();
  }
  int Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Everything it said so far, over all its starts.
  std::string errors() const {
    auto text = ReadFile(Folders::OfThisUser(), folder_.Path("stderr"), 1 << 20);
    return text.ok() ? *text : "";
  }

 private:
  pid_t Spawn(const std::vector<std::string>& words, int inherited) {
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string log = folder_.Path("stderr");
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!group_.empty()) {
      const int procs = open(group_.c_str(), O_WRONLY | O_CLOEXEC);
      if (write(procs, "0", 1) != 1) _exit(127);
    }
    fcntl(inherited, F_SETFD, 0);
    const int error_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(error_fd, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }

  control::ScratchFolder folder_;
  std::string address_, group_;
  pid_t pid_ = 0;
};

}  // namespace patchbay::scheduler

// Child processes of a test, observed: the lines they print, how they end, their parent.
#pragma once

#include <fstream>
#include <string>

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay::workers {

inline constexpr int kPatienceMs = 30'000;

/// The next line without its line end; a partial line when the other side ends or kPatienceMs pass.
inline std::string ReadLine(int fd) {
  std::string line;
  pollfd wait{fd, POLLIN, 0};
  for (char c = 0; poll(&wait, 1, kPatienceMs) > 0 && read(fd, &c, 1) == 1 && c != '\n';) {
    line += c;
  }
  return line;
}

/// The number at the end of "start NAME PID".
inline pid_t PidOf(const std::string& line) {
  return static_cast<pid_t>(std::stol(line.substr(line.rfind(' ') + 1)));
}

inline pid_t ParentOf(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  pid_t parent = 0;
  stat >> number >> name >> state >> parent;
  return parent;
}

/// Whether the process ends within kPatienceMs, or has.
inline bool EndsSoon(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return true;
  pollfd wait{fd, POLLIN, 0};
  const bool ended = poll(&wait, 1, kPatienceMs) == 1;
  close(fd);
  return ended;
}

/// A signal from a process that is not the other one's parent.
inline void KillAsAStranger(pid_t pid, int number) {
  const pid_t stranger = fork();
  if (stranger == 0) _exit(kill(pid, number));
  int wait_status = -1;
  waitpid(stranger, &wait_status, 0);
}

/// Whether the process reads its input within kPatienceMs.
inline bool TakesItsSignals(pid_t pid) {
  for (int looks = 0; looks < kPatienceMs; ++looks) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string word; status >> word;) {
      if (word != "ShdPnd:") continue;
      status >> word;
      if (word.find_first_not_of('0') == std::string::npos) return true;
    }
    poll(nullptr, 0, 1);
  }
  return false;
}

}  // namespace patchbay::workers

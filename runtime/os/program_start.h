// The first calls of a main: descriptors, file limit, the order in which processes end when memory
// runs out, and their last message. Without libraries, for the supervisor too.
#pragma once

#include <charconv>
#include <csignal>
#include <cstring>
#include <initializer_list>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace patchbay {

/// From now on an uncaught exception on any thread ends the process with one line on stderr and
/// exit code 1 if memory or threads have run out. Any other one still aborts, since it is a defect.
/// Call it first in main.
void ExplainTermination();

/// Opens /dev/null in place of a missing standard input, output or error. Every main calls it
/// first: otherwise the next file or socket gets that number, and output for the terminal is
/// written into it. Ends the program on failure.
inline void OpenClosedStandardStreams() {
  for (const int wanted : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The kernel assigns the lowest free number, which is this one, as the lower ones are open.
    if (fcntl(wanted, F_GETFD) < 0 && open("/dev/null", O_RDWR) != wanted) _exit(EXIT_FAILURE);
  }
}

/// From now on a write beyond the limit on file sizes (`ulimit -f`) fails with EFBIG, and is
/// reported as a full disk is; without this SIGXFSZ ends the process without a word. Call it first
/// in main: a child starts with the default again where its parent sets default signal actions.
inline void ReportFileLimitAsError() { std::signal(SIGXFSZ, SIG_IGN); }

// The kernel's choice of a process to end weighs its memory and its oom_score_adj; ours stand above
// everything of the user's, the ones that cost least to lose on top.
inline constexpr int kOomScoreOfWorkers = 900;  ///< started again, its task with it
inline constexpr int kOomScoreOfAgents = 700;   ///< ends its workers with it
inline constexpr int kOomScoreOfSchedulers = 600;
inline constexpr int kOomScoreOfSupervisors = 500;  ///< ends all of them

/// Raises this process's oom_score_adj to `score`; children inherit it. A higher one, as a service
/// file may have set it, stays. Never called in a process of the user's: a command, a trainer.
inline void RaiseOomScore(int score) {
  constexpr const char* kFile = "/proc/self/oom_score_adj";
  char text[16] = "";
  const int from = open(kFile, O_RDONLY | O_CLOEXEC);
  const ssize_t got = from < 0 ? -1 : read(from, text, sizeof text);
  if (from >= 0) close(from);
  int current = 0;
  if (got <= 0 || std::from_chars(text, text + got, current).ec != std::errc()) return;
  if (current >= score) return;
  const int to = open(kFile, O_WRONLY | O_CLOEXEC);
  if (to < 0) return;
  char* end = std::to_chars(text, text + sizeof text, score).ptr;
  // Where it is forbidden, the kernel's own choice stands.
  (void)!write(to, text, static_cast<std::size_t>(end - text));
  close(to);
}

}  // namespace patchbay

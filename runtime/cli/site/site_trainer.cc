#include "runtime/cli/site/site_trainer.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr int kCannotExecute = 127, kExitBySignal = 128;
constexpr int kPollMs = 20;

/// In the child: never returns.
[[noreturn]] void Execute(std::vector<std::string> words, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotExecute);
  setpgid(0, 0);  // Ctrl-C reaches it once, by this process
  signal(SIGXFSZ, SIG_DFL);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "patchbay: start the trainer: %s: %s\n", arguments[0], strerror(errno));
  _exit(kCannotExecute);
}

}  // namespace

StatusOr<SiteTrainer> SiteTrainer::Start(const std::vector<std::string>& words, std::int64_t rank,
                                         std::int64_t world_size, const std::string& key_file) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(world_size).c_str(), 1);
  setenv("PATCHBAY_CLUSTER", key_file.c_str(), 1);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return FromErrno("start the trainer", words[0], errno);
  if (pid == 0) Execute(words, parent);
  return SiteTrainer(pid);
}

SiteTrainer::~SiteTrainer() {
  if (pid_ >= 0) Await(0);
}

std::optional<int> SiteTrainer::PollExit() {
  int status = 0;
  if (pid_ >= 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : kExitBySignal + WTERMSIG(status);
  }
  return status_;
}

void SiteTrainer::Signal(int number) const {
  if (pid_ >= 0) kill(pid_, number);
}

int SiteTrainer::Await(long kill_after_ms) {
  const TimeMs deadline = SteadyClock().NowMs() + kill_after_ms;
  while (!PollExit().has_value()) {
    if (SteadyClock().NowMs() >= deadline) Signal(SIGKILL);
    poll(nullptr, 0, kPollMs);
  }
  return *status_;
}

}  // namespace patchbay::cli

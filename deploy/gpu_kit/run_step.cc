#include "deploy/gpu_kit/run_step.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay::gpu_kit {
namespace {

constexpr long kOutputBytesMax = 1 << 20;
constexpr timespec kBetweenLooks{0, 10'000'000};

[[noreturn]] void Become(const std::vector<std::string>& words, const std::string& folder,
                         const std::string& log) {
  setpgid(0, 0);  // what it starts is killed with it
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int nothing = open("/dev/null", O_RDONLY);
  if (out < 0 || chdir(folder.c_str()) != 0) _exit(127);
  if (nothing >= 0) dup2(nothing, 0);
  dup2(out, 1);
  dup2(out, 2);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  std::fprintf(stderr, "start %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

std::string EndOf(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::fseek(file, size > kOutputBytesMax ? size - kOutputBytesMax : 0, SEEK_SET);
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
    text.append(buffer, got);
  }
  std::fclose(file);
  return text;
}

}  // namespace

double SecondsNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Finished RunStep(const std::vector<std::string>& words, const std::string& folder,
                 const std::string& log, double limit_s) {
  Finished finished;
  const double begin = SecondsNow();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) Become(words, folder, log);
  int status = 0;
  bool ended = pid < 0;
  while (!ended && SecondsNow() - begin < limit_s) {
    ended = waitpid(pid, &status, WNOHANG) == pid;
    if (!ended) nanosleep(&kBetweenLooks, nullptr);
  }
  if (pid > 0) kill(-pid, SIGKILL);
  if (!ended) waitpid(pid, &status, 0);
  finished.seconds = SecondsNow() - begin;
  if (pid > 0 && ended && WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  finished.output = EndOf(log);
  return finished;
}

}  // namespace patchbay::gpu_kit

#include "runtime/cli/peak_memory.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/types.h>
#include <unistd.h>

#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::uint64_t kKiB = 1024;

/// A number of /proc/PID/status ("VmHWM", "PPid"); 0 when there is none.
std::uint64_t StatusValue(pid_t pid, const std::string& key) {
  std::ifstream file(StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size() + 1, key + ":") != 0) continue;
    std::istringstream value(line.substr(key.size() + 1));
    std::uint64_t number = 0;
    value >> number;
    return number;
  }
  return 0;
}

/// Whether the program's name is among the first words of its command line: a pid may be another
/// node's.
bool Runs(pid_t pid, const std::string& program) {
  std::ifstream file(StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
  std::string word;
  std::getline(file, word, '\0');
  return word.size() >= program.size() &&
         word.compare(word.size() - program.size(), program.size(), program) == 0;
}

void Add(std::map<std::string, std::uint64_t>& peaks, const std::string& name, pid_t pid) {
  const std::uint64_t peak = StatusValue(pid, "VmHWM") * kKiB;
  if (peak > 0) peaks[name] = peak;
}

/// The scheduler is the agent's sibling on a cluster's first node.
pid_t FindScheduler(pid_t supervisor) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (Runs(pid, "patchbay-scheduler") &&
        StatusValue(pid, "PPid") == static_cast<std::uint64_t>(supervisor)) {
      return pid;
    }
  }
  return 0;
}

}  // namespace

std::map<std::string, std::uint64_t> PeakMemory(const protocol::ClusterDescribed& cluster) {
  std::map<std::string, std::uint64_t> peaks;
  Add(peaks, "trainer", getpid());
  pid_t agent = 0;
  for (const protocol::WorkerRow& worker : cluster.workers) {
    const auto pid = static_cast<pid_t>(worker.pid);
    if (pid <= 0 || !Runs(pid, "patchbay-worker")) continue;
    Add(peaks, StrCat("worker ", worker.index), pid);
    agent = static_cast<pid_t>(StatusValue(pid, "PPid"));
  }
  if (agent <= 1 || !Runs(agent, "patchbay-agent")) return peaks;
  Add(peaks, "agent", agent);
  const auto supervisor = static_cast<pid_t>(StatusValue(agent, "PPid"));
  if (supervisor > 1) {
    Add(peaks, "supervisor", supervisor);
    Add(peaks, "scheduler", FindScheduler(supervisor));
  }
  return peaks;
}

}  // namespace patchbay::cli

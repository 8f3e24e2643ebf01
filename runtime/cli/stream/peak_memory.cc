#include "runtime/cli/stream/peak_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "runtime/core/strings.h"

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

std::vector<std::string> CommandLine(pid_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// Whether the process runs the program: a pid may be another node's.
bool Runs(pid_t pid, const std::string& program) {
  const std::vector<std::string> words = CommandLine(pid);
  return !words.empty() && words[0].ends_with(program);
}

/// Whether it is that worker process: another node's may have its pid.
bool IsWorker(pid_t pid, std::uint32_t index) {
  if (!Runs(pid, "patchbay-worker")) return false;
  const std::vector<std::string> words = CommandLine(pid);
  const auto flag = std::find(words.begin(), words.end(), "--index");
  return flag != words.end() && flag + 1 != words.end() && *(flag + 1) == StrCat(index);
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
  const auto of_node = [&cluster](const std::string& node) {
    return cluster.nodes.size() > 1 ? node + " " : std::string();
  };
  std::map<pid_t, std::string> agents;  // and their nodes
  std::set<pid_t> seen;
  for (const protocol::WorkerRow& worker : cluster.workers) {
    const auto pid = static_cast<pid_t>(worker.pid);
    if (pid <= 0 || !IsWorker(pid, worker.index) || !seen.insert(pid).second) continue;
    Add(peaks, StrCat(of_node(worker.node), "worker ", worker.index), pid);
    agents.emplace(static_cast<pid_t>(StatusValue(pid, "PPid")), worker.node);
  }
  for (const auto& [agent, node] : agents) {
    if (agent <= 1 || !Runs(agent, "patchbay-agent")) continue;
    Add(peaks, of_node(node) + "agent", agent);
    const auto supervisor = static_cast<pid_t>(StatusValue(agent, "PPid"));
    if (supervisor <= 1) continue;
    Add(peaks, of_node(node) + "supervisor", supervisor);
    const pid_t scheduler = FindScheduler(supervisor);
    if (scheduler > 0) Add(peaks, "scheduler", scheduler);
  }
  return peaks;
}

}  // namespace patchbay::cli

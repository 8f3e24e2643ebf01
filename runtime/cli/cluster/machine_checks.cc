#include "runtime/cli/cluster/machine_checks.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <arpa/inet.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/cli/cluster/exposed_ports.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/client/cluster.h"
#include "runtime/core/clock.h"
#include "runtime/core/strings.h"
#include "runtime/memory/gpu_advice.h"
#include "runtime/os/executable.h"
#include "runtime/os/file.h"
#include "runtime/os/usable_cores.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kReachMs = 5'000;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kWantedMemory = 2 * kGiB;
constexpr std::uint64_t kWantedHomeBytes = kGiB / 4;
constexpr std::uint64_t kWantedOpenFiles = 1024;
constexpr std::int64_t kSaneSeconds = 1'735'689'600;  ///< 2025-01-01: a clock before it was not set
constexpr long kCifsMagic = 0xFF534D42, kSmb2Magic = 0xFE534D42;

Check Ok(std::string name, std::string found) {
  return {std::move(name), CheckState::kOk, std::move(found), ""};
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Check CheckCores() {
  const std::int64_t cores = UsableCores();
  Check check = Ok("cores", StrCat(cores, " usable of ", sysconf(_SC_NPROCESSORS_ONLN)));
  if (cores < 2) {
    check.state = CheckState::kLacks;
    check.means = "reading and transforming take turns; 2 or more overlap them";
  }
  return check;
}

Check CheckInstructions() {
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (v3) return Ok("processor", "x86-64-v3 (AVX2, FMA)");
  return {"processor", CheckState::kBroken, "older than x86-64-v3",
          "the programs need AVX2, FMA and BMI2 (any server since 2013)"};
}

/// The smallest of the machine's memory and the limits of the cgroup.
std::uint64_t UsableMemory() {
  const auto total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::string limit = FirstLine("/sys/fs/cgroup/memory.max");
  if (limit.empty() || limit == "max") return total;
  return std::min<std::uint64_t>(total, std::strtoull(limit.c_str(), nullptr, 10));
}

Check CheckMemory() {
  const std::uint64_t memory = UsableMemory();
  Check check = Ok("memory", HumanBytes(memory));
  if (memory < kWantedMemory) {
    check.state = CheckState::kLacks;
    check.means = "start fewer workers (--cpus), smaller batches";
  }
  return check;
}

Check CheckGpu() {
  std::string reason;
  const std::vector<memory::GpuDescription> gpus = memory::ListGpus(&reason);
  if (gpus.empty()) {
    return {"gpu", CheckState::kLacks, reason.empty() ? "none" : reason,
            "ops run on the CPU (numerics: cpu)"};
  }
  std::vector<std::string> names, limits;
  for (const memory::GpuDescription& gpu : gpus) {
    names.push_back(StrCat(gpu.name, " (", HumanBytes(gpu.memory_bytes), ")"));
    const std::string limit = memory::LimitOf(gpu);
    if (!limit.empty()) limits.push_back(StrCat("GPU ", gpu.index, ": ", limit));
  }
  const std::string found = StrJoin(names, ", ");
  if (limits.empty()) return Ok("gpu", found);
  return {"gpu", CheckState::kLacks, found, StrJoin(limits, "; ")};
}

Check CheckDriver() {
  const std::string driver = FirstLine("/proc/driver/nvidia/version");
  if (!driver.empty()) return Ok("driver", driver);
  return {"driver", CheckState::kLacks, "no NVIDIA driver", "GPUs cannot be used"};
}

Check CheckIoUring() {
  if (syscall(SYS_io_uring_setup, 0, nullptr) < 0 && (errno == ENOSYS || errno == EPERM)) {
    return {"io", CheckState::kLacks, "io_uring is off",
            "no effect today: reads use pread, and more of them in flight need more threads"};
  }
  return Ok("io", "pread; io_uring is available");
}

Check CheckLimit(const std::string& name, int resource, std::uint64_t wanted,
                 const std::string& means, bool bytes) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return Ok(name, "unlimited");
  Check check =
      Ok(name, bytes ? HumanBytes(limit.rlim_cur) : std::to_string(std::uint64_t{limit.rlim_cur}));
  if (limit.rlim_cur < wanted) {
    check.state = CheckState::kLacks;
    check.means = means;
  }
  return check;
}

Check CheckPort() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kDefaultPort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int reuse = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  const std::string name = StrCat("127.0.0.1:", kDefaultPort);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    return Ok("port", name + " is free");
  }
  return {
      "port", CheckState::kLacks, StrCat(name, ": ", std::strerror(errno)),
      "a cluster may be running here already; `up` then uses another port, or the one of --listen"};
}

Check CheckClock() {
  if (WallClockSeconds() < kSaneSeconds) {
    return {"time", CheckState::kLacks, "the clock was not set",
            "times in logs and jobs are wrong; batches are not affected"};
  }
  timex state{};
  const int result = adjtimex(&state);
  if (result < 0 || (state.status & STA_UNSYNC) == 0)
    return Ok("time", "set and synchronised by NTP");
  return {"time", CheckState::kLacks, "set, but not synchronised by NTP",
          "times of several nodes' logs may not line up"};
}

Check CheckKernel() {
  utsname kernel{};
  uname(&kernel);
  const UniqueFd memory(memfd_create("patchbay-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  const std::string found = StrCat("Linux ", static_cast<const char*>(kernel.release));
  if (memory.valid() && process.valid()) return Ok("kernel", found + ", memfd and pidfd");
  if (!memory.valid()) {
    return {"kernel", CheckState::kBroken, found + ", no memfd_create",
            "a trainer's ring cannot be made"};
  }
  return {"kernel", CheckState::kLacks, found + ", no pidfd (before 5.3)",
          "worker exits are polled every 20 ms instead of reported at once"};
}

Check CheckNetworkInterfaces() {
  const bool rdma = std::filesystem::exists("/sys/class/infiniband");
  return Ok("network",
            rdma
                ? "TCP, and RDMA devices: `--data-policy rdma` has not been measured on any"
                : "TCP: batches from other nodes come by TLS; no RDMA device (rdma is unmeasured)");
}

Check CheckPrograms() {
  for (const char* name :
       {"patchbay-supervisor", "patchbay-agent", "patchbay-worker", "patchbay-scheduler"}) {
    if (!SiblingBinary(name).ok()) {
      return {"programs", CheckState::kBroken, StrCat(name, " is not in the folder of patchbay"),
              "install all programs in one folder"};
    }
  }
  return Ok("programs", "all in the folder of this one");
}

bool OnNetworkFileSystem(const std::string& path) {
  struct statfs file_system {};
  if (statfs(path.c_str(), &file_system) != 0) return false;
  const auto type = static_cast<long>(file_system.f_type);
  return type == NFS_SUPER_MAGIC || type == kCifsMagic || type == kSmb2Magic ||
         type == SMB_SUPER_MAGIC;
}

std::string NearestParent(std::string path) {
  while (path.size() > 1 && access(path.c_str(), F_OK) != 0) {
    const std::size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }
  return path;
}

bool IsFolder(const std::string& path) {
  struct stat entry {};
  return stat(path.c_str(), &entry) == 0 && S_ISDIR(entry.st_mode);
}

/// The reason why commands cannot use a home that exists; "" when they can.
std::string WhyRefused(const std::string& home) {
  for (const std::string& folder : {home, home + "/keys"}) {
    if (access(folder.c_str(), F_OK) != 0) continue;
    const Status checked = control::CheckPrivateFolder(folder);
    if (!checked.ok()) return std::string(MessageOf(checked));
  }
  return "";
}

Check CheckFolder(const std::string& name, const std::string& path) {
  const std::string place = NearestParent(path);
  const std::uint64_t free_bytes = FreeBytes(place);
  Check check = Ok(name, StrCat(path, ", ", HumanBytes(free_bytes), " free"));
  if (OnNetworkFileSystem(place)) {
    check.state = CheckState::kBroken;
    check.means = "keys and journals do not live on NFS or CIFS: set PATCHBAY_HOME to a local disk";
  } else if (!IsFolder(place)) {
    check.state = CheckState::kBroken;
    check.means = place + " is not a folder";
  } else if (access(place.c_str(), W_OK) != 0 || free_bytes == 0) {
    check.state = CheckState::kBroken;
    check.means = "nothing can be written there";
  } else if (free_bytes < kWantedHomeBytes) {
    check.state = CheckState::kLacks;
    check.means = "little room for journals";
  }
  return check;
}

Check CheckHome(const std::string& home) {
  Check check = CheckFolder("home", home);
  const std::string refused = check.state == CheckState::kBroken ? "" : WhyRefused(home);
  if (!refused.empty()) {
    check.state = CheckState::kBroken;
    check.means = "every command refuses it: " + refused;
  }
  return check;
}

}  // namespace

std::uint64_t FreeBytes(const std::string& path) {
  struct statvfs space {};
  if (statvfs(NearestParent(path).c_str(), &space) != 0) return 0;
  return std::uint64_t{space.f_bavail} * space.f_frsize;
}

Check CheckReach(const std::string& address) {
  const std::int64_t begin_ms = data::SteadyNowMs();
  const auto connected = data::ConnectTcp(address, begin_ms + kReachMs);
  if (connected.ok()) {
    return Ok("reach", StrCat(address, " answers, after ", data::SteadyNowMs() - begin_ms, " ms"));
  }
  return BrokenCheck("reach", connected.status(), "workers of this node cannot deliver there");
}

std::vector<Check> CheckMachine(const client::Environment& environment) {
  std::vector<Check> checks = {CheckPrograms(), CheckInstructions(), CheckCores(),  CheckMemory(),
                               CheckGpu(),      CheckDriver(),       CheckKernel(), CheckIoUring()};
  checks.push_back(CheckLimit(
      "memory lock", RLIMIT_MEMLOCK, 64u << 20,
      "rings on an RDMA device (--data-policy rdma) need more: ulimit -l, or LimitMEMLOCK=", true));
  checks.push_back(CheckLimit("open files", RLIMIT_NOFILE, kWantedOpenFiles,
                              "many stores at once need more: ulimit -n", false));
  checks.push_back(CheckNetworkInterfaces());
  checks.push_back(CheckPort());
  checks.push_back(Ok("exposed", ExposedPorts("/proc")));
  checks.push_back(CheckClock());
  checks.push_back(CheckHome(environment.home));
  checks.push_back(CheckFolder("temporary", environment.temporary));
  return checks;
}

}  // namespace patchbay::cli

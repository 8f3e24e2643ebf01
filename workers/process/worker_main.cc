// patchbay-worker: started by the agent, or `patchbay-worker run OP` by a command.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/core/status.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/host_identity.h"
#include "runtime/os/program_start.h"
#include "runtime/wire/control/parent_pipe.h"
#include "workers/process/child_process.h"
#include "workers/process/flags.h"
#include "workers/process/local_run.h"
#include "workers/process/planning_crash.h"
#include "workers/process/worker_session.h"
#include "workers/stream/gpu_lane.h"

namespace patchbay::workers {
namespace {

/// The most private memory this process may have (RLIMIT_DATA: heap, stacks, private mappings; not
/// files and rings it maps). Above it allocation fails: a task ends with ResourceExhausted, a stage
/// ends the process. 0 = no limit.
Status LimitMemory(std::uint64_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  const rlimit limit{size_bytes, size_bytes};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return FromErrno("limit memory", "RLIMIT_DATA", errno);
  return absl::OkStatus();
}

/// The peak resident memory, including mapped files and rings (VmHWM).
std::uint64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

/// Freed memory stays with the process instead of going back to the kernel and being faulted in
/// again with the next task: tasks free and take tens of megabytes, encoders a context for each
/// block. It keeps at most its peak use. Call before the first thread starts.
void KeepFreedMemory() {
  constexpr int kLargestHeapBlock = 32 << 20;  // glibc's own limit for M_MMAP_THRESHOLD
  constexpr int kNeverTrim = -1;
  mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
  mallopt(M_ARENA_MAX, 1);  // other arenas give their heaps back when they are empty
}

/// Raises the descriptor limit to the most that the system allows: every open slide takes one.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

constexpr std::uint64_t kNoLimit = UINT64_MAX;

StatusOr<Numerics> NumericsOfFlag(const std::string& name) {
  const std::optional<Numerics> numerics = NumericsFromName(name);
  if (numerics == Numerics::kCpu || numerics == Numerics::kCuda) return *numerics;
  return InvalidArgument("--numerics: '", name, "' is neither cpu nor cuda");
}

/// The fabric of this node, if it has one.
StatusOr<data::Network> NetworkFromFlags(const Flags& flags) {
  data::Network network;
  const std::string name = flags.Text("data-policy", "tls");
  const auto policy = data::NetworkPolicyFromName(name);
  if (!policy) return InvalidArgument("--data-policy: unknown '", name, "'");
  network.policy = *policy;
  if (*policy == data::NetworkPolicy::kRdma) {
    PB_ASSIGN_OR_RETURN(network.address, flags.Required("data-address"));
  }
  return network;
}

/// Descriptors for images: half of the process's limit; the rest is for its connections.
std::uint64_t OpenFilesMax() {
  constexpr std::uint64_t kMost = 4096;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost / 16;
  return std::clamp<std::uint64_t>(limit.rlim_max / 2, 1, kMost);
}

StatusOr<WorkerOptions> OptionsFromFlags(const Flags& flags) {
  WorkerOptions options;
  PB_ASSIGN_OR_RETURN(const std::string key, flags.Required("key"));
  PB_ASSIGN_OR_RETURN(options.key, control::ReadKeyFile(key));
  options.node = options.key.name;
  PB_ASSIGN_OR_RETURN(const std::uint64_t index, flags.Number("index", 0, 0, 65'535));
  options.index = static_cast<std::uint32_t>(index);
  PB_ASSIGN_OR_RETURN(options.agent_incarnation, flags.Number("agent-incarnation", 0, 0, kNoLimit));
  PB_ASSIGN_OR_RETURN(options.worker_incarnation,
                      flags.Number("incarnation", RandomU64(), 1, kNoLimit));
  PB_ASSIGN_OR_RETURN(options.numerics, NumericsOfFlag(flags.Text("numerics", "cpu")));
  options.delivery.gpu_uuid = flags.Text("gpu", "");
  options.capacity.gpus = options.delivery.gpu_uuid.empty() ? 0 : 1;
  PB_ASSIGN_OR_RETURN(options.capacity.memory_bytes, flags.Number("memory", 0, 0, kNoLimit));
  PB_ASSIGN_OR_RETURN(const std::uint64_t threads, flags.Number("compute-threads", 1, 1, 256));
  options.pipeline.compute_threads = static_cast<int>(threads);
  options.capacity.cpu_millis = static_cast<std::uint32_t>(threads * 1000);
  const std::uint64_t fetched = options.capacity.gpus == 0 ? threads * 8 : 2 * kLanePatchesMax;
  PB_ASSIGN_OR_RETURN(options.pipeline.fetched_patches_max,
                      flags.Number("fetched-patches", fetched, 1, 65'536));
  PB_ASSIGN_OR_RETURN(const std::uint64_t fetched_mib,
                      flags.Number("fetched-mib", 256, 1, 1 << 20));
  options.pipeline.fetched_bytes_max = fetched_mib << 20;
  PB_ASSIGN_OR_RETURN(options.read_caches.open_files_max,
                      flags.Number("open-files", OpenFilesMax(), 1, 1'000'000));
  PB_ASSIGN_OR_RETURN(const std::uint64_t image_mib, flags.Number("image-mib", 256, 1, 1 << 20));
  options.image_bytes_max = image_mib << 20;
  PB_ASSIGN_OR_RETURN(const std::uint64_t index_mib, flags.Number("index-mib", 256, 1, 1 << 20));
  options.read_caches.index_bytes_max = index_mib << 20;
  options.tasks.ops = &ops::Table();
  options.tasks.state_folder = flags.Text("state", "");
  if (flags.Has("files")) {
    PB_ASSIGN_OR_RETURN(options.tasks.sharing, FileSharing::FromText(flags.Text("files", "")));
  }
  options.tasks.may_take_burned_in = flags.Has("burned-in");
  PB_ASSIGN_OR_RETURN(options.tasks.functions,
                      FunctionPolicy::FromText(flags.Text("functions", "")));
  options.tasks.threads = options.pipeline.compute_threads;
  options.tasks.gpu_uuid = options.delivery.gpu_uuid;
  PB_ASSIGN_OR_RETURN(options.delivery.host_identity, HostIdentity());
  PB_ASSIGN_OR_RETURN(options.delivery.rdma, NetworkFromFlags(flags));
  return options;
}

Status Serve(const std::vector<std::string>& words) {
  PB_ASSIGN_OR_RETURN(
      const Flags flags,
      Flags::Parse(
          words, {"key",        "index",     "agent-incarnation", "incarnation",     "numerics",
                  "gpu",        "memory",    "compute-threads",   "fetched-patches", "fetched-mib",
                  "open-files", "image-mib", "index-mib",         "state",           "files",
                  "burned-in",  "functions", "data-policy",       "data-address",    "ready-fd"}));
  PB_ASSIGN_OR_RETURN(WorkerOptions options, OptionsFromFlags(flags));
  PB_ASSIGN_OR_RETURN(const int ready_fd, ReadyFd(flags));
  InitLogging(StrCat("worker ", options.index), LogSeverity::kInfo);
  RaiseDescriptorLimit();
  KeepFreedMemory();
  NamePlanningCrashes();
  PB_RETURN_IF_ERROR(LimitMemory(options.capacity.memory_bytes));
  // Without a limit of its own the worker may use all memory of its node; tasks state their needs.
  if (options.capacity.memory_bytes == 0) options.capacity.memory_bytes = OwnMemoryLimit().bytes;
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<control::EventLoop> loop, control::EventLoop::Open());
  WorkerSession* session = nullptr;
  PB_RETURN_IF_ERROR(loop->WatchSignals({SIGTERM, SIGINT},
                                        [&session](int, pid_t) {
                                          if (session != nullptr) session->Drain();
                                        })
                         .status());
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerSession> opened,
                      WorkerSession::Open(*loop, options));
  session = opened.get();
  control::ParentPipe parent(*loop, ready_fd);
  parent.ReportReady();
  loop->Run();
  LogInfo(StrCat("drained, peak memory ", HumanBytes(PeakResidentBytes())));
  return absl::OkStatus();
}

}  // namespace

}  // namespace patchbay::workers
int main(int argc, char** argv) {
  patchbay::ExplainTermination();
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::RaiseOomScore(patchbay::kOomScoreOfWorkers);
  using namespace patchbay::workers;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "run") {
    words.erase(words.begin());
    return RunInline(patchbay::ops::Table(), words);
  }
  const patchbay::Status status = Serve(words);
  if (status.ok()) return kExitDone;
  std::fprintf(stderr, "patchbay-worker: %s\n", std::string(patchbay::MessageOf(status)).c_str());
  return kExitCannotStart;
}

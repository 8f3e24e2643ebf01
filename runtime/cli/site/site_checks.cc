#include "runtime/cli/site/site_checks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "runtime/cli/command.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/cli/site/node_meeting.h"
#include "runtime/cli/site/site_engine.h"
#include "runtime/client/client.h"
#include "runtime/client/paths.h"
#include "runtime/client/site_file.h"
#include "runtime/core/clock.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/memory/gpu.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/network_file_system.h"
#include "runtime/os/usable_cores.h"
#include "runtime/wire/control/keys.h"

extern char** environ;

namespace patchbay::cli {
namespace {

constexpr const char* kShowConfig =
    "SLURM_TIME_FORMAT=%s timeout 5 scontrol show config 2>/dev/null";
constexpr TimeMs kClusterMs = 2'000;
constexpr std::int64_t kGraceS = 5;    ///< a trainer and workers need from SIGTERM to their end
constexpr std::int64_t kClockS = 2;    ///< between two clocks that count as one
constexpr std::int64_t kThreads = 32;  ///< most that a worker or agent has

/// Facts that several checks share.
struct Seen {
  const client::Environment& environment;
  const SiteQuestion& question;
  Engine step;                    ///< under Slurm
  MeetingChecks meeting;          ///< under Slurm
  std::string config, partition;  ///< under Slurm, as scontrol shows them
  std::string unit;               ///< under systemd, as systemctl shows it
};

Check Good(std::string name, std::string found) {
  return {std::move(name), CheckState::kOk, std::move(found), ""};
}

Check Lacks(std::string name, std::string found, std::string means) {
  return {std::move(name), CheckState::kLacks, std::move(found), std::move(means)};
}

/// stdout of a command line with a bound of its own; "" where it fails.
std::string OutputOf(const char* command) {
  FILE* const pipe = popen(command, "re");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), got);
  }
  return pclose(pipe) == 0 ? text : "";
}

/// The rest of the line behind "KEY=" or "KEY  = "; "" without one.
std::string ValueIn(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const std::size_t equals = text.find_first_not_of(' ', at + key.size());
    if ((at > 0 && text[at - 1] != '\n') || equals == text.npos || text[equals] != '=') continue;
    const std::size_t end = std::min(text.find('\n', equals), text.size());
    const std::size_t value = std::min(text.find_first_not_of(' ', equals + 1), end);
    return std::string(text.substr(value, end - value));
  }
  return "";
}

/// The number that a text begins with, else 0.
std::int64_t NumberIn(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Whether a list such as "75,99" or "75 SIGUSR1" has the exit status of a stop with work left.
bool HasStopped(std::string list) {
  std::replace(list.begin(), list.end(), ' ', ',');
  return StrCat(",", list, ",").find(",75,") != std::string::npos;
}

std::size_t Items(std::string_view list) {
  return static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
}

Check CheckRendezvous(const Seen& seen) { return seen.meeting.rendezvous; }
Check CheckPorts(const Seen& seen) { return seen.meeting.ports; }

Check CheckState(const Seen& seen) {
  const std::string& folder = seen.environment.temporary;
  const Status local = RefuseNetworkFileSystem(Folders::OfThisUser(), folder);
  if (local.ok()) return Good("state", folder);
  return BrokenCheck("state", local, "journal and caches: set TMPDIR, or --state of `site run`");
}

/// A standing cluster that takes the key.
Check CheckCluster(const Seen& seen) {
  const std::string& file = seen.question.cluster_file;
  if (file.empty()) return Good("cluster", "no standing one is named (--cluster)");
  const StatusOr<control::KeyFile> key = control::ReadKeyFile(file);
  if (!key.ok()) {
    return BrokenCheck("cluster", key.status(), "nothing can connect with this key file");
  }
  const TimeMs deadline = SteadyClock().NowMs() + kClusterMs;
  auto client = client::Client::Connect(
      file, [deadline] { return !Interrupted() && SteadyClock().NowMs() < deadline; });
  const Status asked = client.ok() ? client->DescribeCluster().status() : client.status();
  // A key of role worker is known, but may not ask this.
  if (asked.ok() || (client.ok() && absl::IsPermissionDenied(asked))) {
    return Good("cluster", StrCat(key->address, " takes the key of ", key->name));
  }
  return BrokenCheck(
      "cluster", asked,
      StrCat(key->address, " does not take the key of ", key->name, " within ", kClusterMs / 1000,
             " s: no cluster there, a firewall, or a revoked key"));
}

/// This clock against that of Slurm's controller.
Check CheckClocks(const Seen& seen) {
  const std::string_view begin = "Configuration data as of ";
  if (!seen.config.starts_with(begin)) {
    return Lacks("clocks", "scontrol gives no time", "clocks of the nodes were not compared");
  }
  const std::int64_t ahead =
      WallClockSeconds() - NumberIn(std::string_view(seen.config).substr(begin.size()));
  const std::string found = StrCat(ahead < 0 ? -ahead : ahead, " s from Slurm's controller");
  if (-kClockS <= ahead && ahead <= kClockS) return Good("clocks", found);
  return Lacks("clocks", found, "run NTP: times in logs and jobs of several nodes do not line up");
}

/// The least pids.max of the groups around this process (v1 and v2); nothing without one.
std::optional<std::int64_t> ThreadLimit() {
  std::optional<std::int64_t> least;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool is_v2 = line.starts_with("0::");
    const std::size_t at = line.find(":pids:");
    if (!is_v2 && at == line.npos) continue;
    const std::string root = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";
    std::string group = line.substr(is_v2 ? 3 : at + 6);
    while (!group.empty()) {
      std::int64_t limit = 0;
      const bool has = bool(std::ifstream(StrCat(root, group, "/pids.max")) >> limit);
      if (has && limit < least.value_or(INT64_MAX)) least = limit;
      group.resize(group == "/" ? 0 : std::max<std::size_t>(group.rfind('/'), 1));
    }
  }
  return least;
}

/// Limits around this process, and the node that `up` or `site run` would make of them.
Check CheckLimits(const Seen& seen) {
  const MemoryBudget memory = MemoryLimit();
  const auto processes = ThreadLimit();
  const std::int64_t cores = UsableCores(), workers = seen.step.cpus.value_or(cores);
  const bool by_group = memory.limit.starts_with('/');
  const std::string bound = !seen.step.memory.empty() ? seen.step.memory
                            : by_group ? HumanBytes(memory.bytes / 100 * kMemoryUsePercent)
                                       : "no limit";
  Check check = Good("limits", StrCat(Counted(workers, "worker"), " on ", Counted(cores, "core"),
                                      ", their memory: ", bound,
                                      ", threads: ", processes ? StrCat(*processes) : "no limit"));
  if (processes && *processes < kThreads * (workers + 1)) {
    check.means = StrCat("workers need ", kThreads * (workers + 1), " threads: raise pids.max");
  } else if (workers > cores) {
    check.means = "more workers than cores: srun needs its own --cpus-per-task";
  } else if (seen.question.engine == "slurm" && !seen.step.cpus) {
    check.means = "a worker for each core: bound them with --cpus-per-task, for srun too";
  } else if (bound == "no limit") {
    check.means = "nothing bounds the memory of workers: --mem, resources.limits, or --memory";
  }
  if (!check.means.empty()) check.state = CheckState::kLacks;
  return check;
}

Check CheckPseudonymKey(const Seen& seen) {
  const StatusOr<client::Site> site = client::ReadSite(seen.environment);
  if (!site.ok()) return BrokenCheck("pseudonyms", site.status(), "no node starts with this file");
  if (site->pseudonym_key.empty()) {
    return Lacks("pseudonyms", "no key of the site",
                 "each home names slides by a key of its own: share one (configs/site.md)");
  }
  const Status key = CheckSiteKey(seen.environment, *site);
  if (!key.ok()) return BrokenCheck("pseudonyms", key, "nothing can be ingested here");
  const auto sharing = client::SharingOf(*site);
  if (!sharing.ok()) return BrokenCheck("pseudonyms", sharing.status(), "no node starts here");
  return Good("pseudonyms", StrCat(site->pseudonym_key, ", files of group ",
                                   site->group.empty() ? "each account" : site->group));
}

/// GPUs that the engine gave this process; nothing where it gives all.
std::optional<std::size_t> AllocatedGpus() {
  for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "NVIDIA_VISIBLE_DEVICES"}) {
    const std::string list = VariableIn(environ, name);
    if (list == "all") return std::nullopt;
    if (list == "void" || list == "none") return 0;
    if (!list.empty()) return Items(list);
  }
  return NumberIn(VariableIn(environ, "SLURM_GPUS_ON_NODE"));
}

Check CheckGpus(const Seen&) {
  std::string reason;
  const std::size_t visible = memory::ListGpus(&reason).size();
  const auto allocated = AllocatedGpus();
  const std::string found =
      StrCat(allocated ? StrCat(*allocated) : "all", " allocated, ", visible, " visible");
  if (!allocated) {
    return Lacks("allocated", found, "NVIDIA_VISIBLE_DEVICES=all: workers take GPUs of others too");
  }
  if (*allocated == visible) return Good("allocated", found);
  if (*allocated < visible) {
    return Lacks("allocated", found,
                 "workers may take GPUs of others: ConstrainDevices=yes (cgroup.conf), or --gpus");
  }
  return Lacks("allocated", found,
               reason.empty() ? "CUDA_VISIBLE_DEVICES hides the others" : reason);
}

Check CheckPreemption(const Seen& seen) {
  const std::string mode = ValueIn(seen.partition, "PreemptMode");
  const std::int64_t kill = NumberIn(ValueIn(seen.config, "KillWait"));
  const std::int64_t grace = NumberIn(ValueIn(seen.partition, "GraceTime"));
  if (mode.empty()) return Lacks("preemption", "scontrol does not answer", "it was not looked at");
  const std::string found = StrCat("PreemptMode ", mode, ", GraceTime ", grace, " s, KillWait ",
                                   kill, " s after SIGTERM");
  if (mode.find("SUSPEND") != mode.npos || mode.find("CANCEL") != mode.npos) {
    return Lacks("preemption", found,
                 "preempted jobs do not come back: PreemptMode=REQUEUE for this partition");
  }
  if (kill >= kGraceS) return Good("preemption", found);
  return Lacks("preemption", found, StrCat("trainers need ", kGraceS, " s: KillWait=30"));
}

Check CheckRequeue(const Seen& seen) {
  const std::string exits = ValueIn(seen.config, "RequeueExit");
  const std::string jobs = ValueIn(seen.config, "JobRequeue");
  const std::string found = StrCat("RequeueExit ", exits, ", JobRequeue ", jobs);
  if (HasStopped(exits)) return Good("requeue", found);
  if (exits.empty()) return Lacks("requeue", "scontrol does not answer", "it was not looked at");
  return Lacks("requeue", found,
               "jobs end at 75 unless their script requeues them, as site.sbatch does: "
               "RequeueExit=75 in slurm.conf");
}

Check CheckUnit(const Seen& seen) {
  const std::string name = ValueIn(seen.unit, "Id");
  if (!name.empty()) {
    return Good("unit", StrCat(name, ", ", ValueIn(seen.unit, "ActiveState"),
                               ", memory: ", ValueIn(seen.unit, "MemoryMax"),
                               ", threads: ", ValueIn(seen.unit, "TasksMax")));
  }
  return {"unit", CheckState::kBroken, "no patchbay.service and no patchbay-node@ is loaded",
          "copy deploy/site/systemd/*.service, start one, and ask as root"};
}

/// "1min 30s", "90s", "500ms", "infinity", as systemctl shows a time.
bool IsShort(std::string_view time) {
  const bool in_seconds =
      time.ends_with('s') && time.find_first_not_of("0123456789") + 1 == time.size();
  return time.ends_with("ms") || time == "0" || (in_seconds && NumberIn(time) < kGraceS);
}

Check CheckUnitStop(const Seen& seen) {
  const std::string stop = ValueIn(seen.unit, "TimeoutStopUSec");
  const std::string notify = ValueIn(seen.unit, "NotifyAccess");
  const std::string found = StrCat("TimeoutStopSec ", stop, ", NotifyAccess ", notify);
  if (IsShort(stop) || notify != "all") {
    return Lacks("stop", found,
                 "a node is killed while it drains: TimeoutStopSec=10, NotifyAccess=all");
  }
  return Good("stop", found);
}

Check CheckUnitExit(const Seen& seen) {
  const std::string good = ValueIn(seen.unit, "SuccessExitStatus");
  if (HasStopped(good)) return Good("requeue", "75 is a clean end");
  return Lacks("requeue", StrCat("SuccessExitStatus ", good),
               "a node that was stopped counts as failed: SuccessExitStatus=75");
}

Check CheckUnitGpus(const Seen& seen) {
  const std::size_t here = memory::ListGpus().size();
  const bool hidden = ValueIn(seen.unit, "PrivateDevices") == "yes";
  const std::string found =
      StrCat(Counted(here, "GPU"), ", PrivateDevices ", hidden ? "yes" : "no");
  if (here == 0 || !hidden) return Good("allocated", found);
  return Lacks("allocated", found, "the unit sees none: systemctl edit it with PrivateDevices=no");
}

using CheckFunction = Check (*)(const Seen&);
constexpr CheckFunction kSlurm[] = {CheckRendezvous, CheckPorts,  CheckState,        CheckCluster,
                                    CheckClocks,     CheckLimits, CheckPseudonymKey, CheckGpus,
                                    CheckPreemption, CheckRequeue};
constexpr CheckFunction kSystemd[] = {CheckUnit,     CheckCluster,  CheckPseudonymKey,
                                      CheckUnitGpus, CheckUnitStop, CheckUnitExit};
/// A pod's grace and restart policy cannot be seen from inside.
constexpr CheckFunction kKubernetes[] = {CheckCluster, CheckLimits, CheckPseudonymKey, CheckGpus};

Status LookAtSlurm(Seen& seen) {
  PB_ASSIGN_OR_RETURN(const std::optional<Engine> step, SlurmEngine(environ));
  if (!step.has_value()) {
    return UsageError(
        "doctor --site slurm: not a step of Slurm (no SLURM_STEP_ID): srun --nodes=3 patchbay "
        "doctor --site slurm");
  }
  seen.step = *step;
  seen.config = OutputOf(kShowConfig);
  seen.partition = OutputOf(
      "timeout 5 scontrol show partition -o \"$SLURM_JOB_PARTITION\" 2>/dev/null | tr ' ' '\\n'");
  const std::string& named = seen.question.rendezvous;
  PB_ASSIGN_OR_RETURN(
      const std::string folder,
      client::AbsolutePath(named.empty() ? seen.environment.home + "/rendezvous" : named));
  seen.meeting = MeetNodes(*step, folder, seen.question.interface);
  return absl::OkStatus();
}

Status LookAtSystemd(Seen& seen) {
  if (access("/run/systemd/system", F_OK) != 0) {
    return UsageError("doctor --site systemd: systemd does not run here (no /run/systemd/system)");
  }
  seen.unit = OutputOf(
      "timeout 5 systemctl list-units --all --plain --no-legend patchbay.service "
      "'patchbay-node@*.service' 2>/dev/null | while read -r unit load rest; do "
      "[ \"$load\" != loaded ] || { timeout 5 systemctl show \"$unit\"; break; }; done");
  return absl::OkStatus();
}

Status LookAtKubernetes() {
  if (!VariableIn(environ, "KUBERNETES_SERVICE_HOST").empty()) return absl::OkStatus();
  return UsageError(
      "doctor --site kubernetes: not in a pod (no KUBERNETES_SERVICE_HOST): kubectl exec POD -- "
      "patchbay doctor --site kubernetes");
}

}  // namespace

std::optional<std::int64_t> GraceOfSlurm() {
  const std::int64_t kill = NumberIn(ValueIn(OutputOf(kShowConfig), "KillWait"));
  return kill > 0 ? std::optional(std::max<std::int64_t>(kill - 1, 1)) : std::nullopt;
}

std::vector<std::string> SiteEngines() { return {"slurm", "systemd", "kubernetes"}; }

StatusOr<std::vector<Check>> CheckSite(const client::Environment& environment,
                                       const SiteQuestion& question) {
  Seen seen{environment, question, {}, {}, {}, {}, {}};
  std::span<const CheckFunction> table = kKubernetes;
  if (question.engine == "slurm") {
    table = kSlurm;
    PB_RETURN_IF_ERROR(LookAtSlurm(seen));
  } else if (question.engine == "systemd") {
    table = kSystemd;
    PB_RETURN_IF_ERROR(LookAtSystemd(seen));
  } else {
    PB_RETURN_IF_ERROR(LookAtKubernetes());
  }
  std::vector<Check> checks;
  for (const CheckFunction check : table) checks.push_back(check(seen));
  return checks;
}

}  // namespace patchbay::cli

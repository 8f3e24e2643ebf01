#include "runtime/cli/site/site_engine.h"

#include <algorithm>
#include <charconv>

#include "runtime/cli/command.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::uint64_t kUsedPercent = 90;  ///< share of the memory for workers

/// Whole numbers only; nothing for "" and everything else.
std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// The variables of a process by name.
class Variables {
 public:
  explicit Variables(char** entries) : entries_(entries) {}

  /// "" where it is not set.
  std::string operator[](std::string_view name) const { return VariableIn(entries_, name); }

 private:
  char** entries_;
};

/// "prefix" + each number of "01-03,7" + "suffix"; false for another form.
bool AddRange(std::string_view prefix, std::string_view range, std::string_view suffix,
              std::vector<std::string>& names) {
  const std::size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const auto from = Number(first);
  const auto to = dash == std::string_view::npos ? from : Number(range.substr(dash + 1));
  if (!from || !to || *to < *from) return false;
  for (std::int64_t i = *from; i <= *to && names.size() <= kMaxSiteNodes; ++i) {
    std::string digits = std::to_string(i);
    digits.insert(0, first.size() - std::min(first.size(), digits.size()), '0');
    names.push_back(StrCat(prefix, digits, suffix));
  }
  return true;
}

/// One item of a list, with at most one pair of brackets; false for another form.
bool AddItem(std::string_view item, std::vector<std::string>& names) {
  const std::size_t open = item.find('['), close = item.find(']');
  if (open == std::string_view::npos) {
    names.emplace_back(item);
    return !item.empty() && close == open;
  }
  const std::string_view suffix =
      close == std::string_view::npos ? "" : item.substr(std::min(close + 1, item.size()));
  if (close == std::string_view::npos || close < open || suffix.find('[') != suffix.npos) {
    return false;
  }
  std::string_view ranges = item.substr(open + 1, close - open - 1);
  while (true) {
    const std::size_t comma = ranges.find(',');
    if (!AddRange(item.substr(0, open), ranges.substr(0, comma), suffix, names)) return false;
    if (comma == std::string_view::npos) return true;
    ranges.remove_prefix(comma + 1);
  }
}

/// The end of the names of variables about this node: a heterogeneous job has them by component,
/// and those without it are the first one's.
StatusOr<std::string> ComponentOf(const Variables& variables) {
  const std::int64_t size = Number(variables["SLURM_HET_SIZE"]).value_or(0);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(size, kMaxSiteNodes); ++i) {
    const std::string end = StrCat("_HET_GROUP_", i);
    PB_ASSIGN_OR_RETURN(const auto nodes, ExpandNodeList(variables["SLURM_JOB_NODELIST" + end]));
    if (std::find(nodes.begin(), nodes.end(), variables["SLURMD_NODENAME"]) != nodes.end()) {
      return end;
    }
  }
  return std::string();
}

std::string MemoryOf(const Variables& variables, const std::string& component, std::int64_t cpus) {
  const std::int64_t node = Number(variables["SLURM_MEM_PER_NODE" + component]).value_or(0);
  const std::int64_t core = Number(variables["SLURM_MEM_PER_CPU" + component]).value_or(0);
  const std::uint64_t mib = static_cast<std::uint64_t>(node > 0 ? node : core * cpus);
  return mib == 0 ? "" : StrCat(mib * kUsedPercent / 100, "M");
}

}  // namespace

std::string VariableIn(char** variables, std::string_view name) {
  for (char** entry = variables; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
      return std::string(text.substr(name.size() + 1));
    }
  }
  return "";
}

StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view list) {
  std::vector<std::string> names;
  bool good = true;
  for (std::size_t at = 0, start = 0, depth = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']' && depth > 0) --depth;
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    good = good && AddItem(list.substr(start, at - start), names);
    start = at + 1;
  }
  if (good && names.size() <= kMaxSiteNodes) return names;
  return InvalidArgument("read the list of nodes: ", list, ": ",
                         good ? StrCat("more than ", kMaxSiteNodes) : "expected n[1-3,5],m");
}

StatusOr<std::optional<Engine>> SlurmEngine(char** entries) {
  const Variables variables(entries);
  const auto rank = Number(variables["SLURM_PROCID"]);
  const std::string job = variables["SLURM_JOB_ID"], step = variables["SLURM_STEP_ID"];
  if (!rank || job.empty() || step.empty()) return std::nullopt;
  Engine engine;
  PB_ASSIGN_OR_RETURN(engine.nodes, ExpandNodeList(variables["SLURM_STEP_NODELIST"]));
  const std::size_t tasks = static_cast<std::size_t>(
      Number(variables["SLURM_NTASKS"]).value_or(static_cast<std::int64_t>(engine.nodes.size())));
  if (tasks != engine.nodes.size()) {
    return UsageError(StrCat("site run: ", Counted(tasks, "task"), " on ",
                             Counted(engine.nodes.size(), "node"),
                             ": start it once a node (srun --ntasks-per-node=1)"));
  }
  const std::string restarts = variables["SLURM_RESTART_COUNT"];
  engine.run = StrCat("slurm-", job, ".", step, "-restart", restarts.empty() ? "0" : restarts);
  engine.rank = *rank;
  engine.name = variables["SLURMD_NODENAME"];
  PB_ASSIGN_OR_RETURN(const std::string component, ComponentOf(variables));
  engine.cpus = Number(variables["SLURM_CPUS_PER_TASK"]);  // srun's
  if (!engine.cpus) engine.cpus = Number(variables["SLURM_CPUS_PER_TASK" + component]);
  engine.memory = MemoryOf(variables, component, engine.cpus.value_or(1));
  const bool has_gpus =
      !variables["CUDA_VISIBLE_DEVICES"].empty() || !variables["SLURM_GPUS_ON_NODE"].empty() ||
      !variables["SLURM_STEP_GPUS"].empty() || !variables["SLURM_JOB_GPUS"].empty();
  if (!has_gpus) engine.gpus = "none";
  engine.faces = variables["SLURM_LAUNCH_NODE_IPADDR"];
  engine.signals_all = true;
  return engine;
}

Engine EngineByHand(std::int64_t rank, std::int64_t of) {
  Engine engine;
  engine.run = "patchbay-site";
  engine.rank = rank;
  for (std::int64_t i = 0; i < of; ++i) engine.nodes.push_back(StrCat("node-", i));
  engine.name = engine.nodes[static_cast<std::size_t>(rank)];
  if (of == 1) engine.faces = "127.0.0.1";
  return engine;
}

}  // namespace patchbay::cli

#include "workers/agent/gpu_choice.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "runtime/core/strings.h"
#include "runtime/memory/gpu_advice.h"

namespace patchbay::workers {
namespace {

using Gpus = std::vector<memory::GpuDescription>;

constexpr std::string_view kNothing[] = {"-1", "NoDevFiles", "void", "none"};
constexpr std::size_t kUuidPrefix = 4;  ///< "GPU-" or "MIG-"

std::optional<std::string> Variable(char** environment, std::string_view name) {
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
      return std::string(text.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

std::vector<std::string> NamesOf(const std::string& list) {
  std::vector<std::string> names;
  std::stringstream rest(list);
  for (std::string name; std::getline(rest, name, ',');) names.push_back(name);
  return names;
}

std::string NoteOn(const memory::GpuDescription& gpu) {
  return StrCat("GPU ", gpu.uuid, " (", gpu.name, "): ", memory::LimitOf(gpu));
}

/// A slice has the UUID of CUDA under "MIG-".
bool IsCalled(const memory::GpuDescription& gpu, std::string_view name) {
  const bool is_uuid = name.starts_with("GPU-") || name.starts_with("MIG-");
  if (!is_uuid) return StrCat(gpu.index) == name;
  return std::string_view(gpu.uuid).substr(kUuidPrefix) == name.substr(kUuidPrefix);
}

Status NotThere(std::string_view name, std::string_view source, const std::string& reason) {
  return NotFound("choose GPUs: ", name, ": no such GPU", source.empty() ? "" : ", but ", source,
                  reason.empty() ? "" : StrCat(" (", reason, ")"));
}

StatusOr<Gpus> Named(const std::vector<std::string>& names, const Gpus& present,
                     std::string_view source, const std::string& reason) {
  Gpus named;
  for (const std::string& name : names) {
    const auto it = std::find_if(present.begin(), present.end(),
                                 [&](const auto& gpu) { return IsCalled(gpu, name); });
    if (it == present.end()) return NotThere(name, source, reason);
    named.push_back(*it);
  }
  return named;
}

/// CUDA shows the GPUs of `list` alone, in its order: the first name that has none is missing.
Status CheckShown(const std::string& list, const Gpus& present, const std::string& reason) {
  std::vector<std::string> names = NamesOf(list);
  names.erase(
      std::find_first_of(names.begin(), names.end(), std::begin(kNothing), std::end(kNothing)),
      names.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_there = std::any_of(present.begin(), present.end(), [&](const auto& gpu) {
      return gpu.index == static_cast<int>(i);
    });
    if (is_there) continue;
    if (i > 0 && names[i].starts_with("MIG-")) {
      return FailedPrecondition("choose GPUs: ", names[i],
                                ": CUDA shows a process one MIG slice: start a node for each "
                                "(CUDA_VISIBLE_DEVICES=",
                                names[i], ")");
    }
    return NotThere(names[i], "CUDA_VISIBLE_DEVICES names it", reason);
  }
  return absl::OkStatus();
}

StatusOr<Gpus> Given(const EngineGpus& engine, const Gpus& present, const std::string& reason) {
  if (engine.cuda.has_value()) {
    PB_RETURN_IF_ERROR(CheckShown(*engine.cuda, present, reason));
    return present;
  }
  const std::vector<std::string> names = NamesOf(engine.slurm);
  if (names.empty() || names.size() == present.size()) return present;
  return Named(names, present, "Slurm gave it to this job", reason);
}

}  // namespace

EngineGpus EngineGpusOf(char** environment) {
  const auto step = Variable(environment, "SLURM_STEP_GPUS");
  return {Variable(environment, "CUDA_VISIBLE_DEVICES"),
          step.has_value() ? *step : Variable(environment, "SLURM_JOB_GPUS").value_or("")};
}

StatusOr<ChosenGpus> ChooseGpus(const std::string& choice, const EngineGpus& engine,
                                const Gpus& present, const std::string& reason) {
  ChosenGpus chosen;
  if (choice == "none") return chosen;
  const bool is_auto = choice == "auto";
  PB_ASSIGN_OR_RETURN(const Gpus gpus, is_auto ? Given(engine, present, reason)
                                               : Named(NamesOf(choice), present, "", reason));
  if (is_auto && gpus.empty()) chosen.notes.push_back("no GPU workers: " + reason);
  for (const memory::GpuDescription& gpu : gpus) {
    const bool is_prohibited = gpu.sharing == memory::GpuSharing::kProhibited;
    if (is_prohibited && !is_auto) return FailedPrecondition("choose GPUs: ", NoteOn(gpu));
    if (!memory::LimitOf(gpu).empty()) chosen.notes.push_back(NoteOn(gpu));
    if (!is_prohibited) chosen.gpus.push_back(gpu);
  }
  return chosen;
}

}  // namespace patchbay::workers

// The GPUs that a node offers: by --gpus, or as the engine that started it gave them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/memory/gpu.h"

namespace patchbay::workers {

/// The variables by which engines give GPUs to a process.
struct EngineGpus {
  /// CUDA_VISIBLE_DEVICES: CUDA hides all others, and those behind the first that is not there.
  std::optional<std::string> cuda;
  /// SLURM_STEP_GPUS, else SLURM_JOB_GPUS: numbers of the node's GPUs; "" = not set.
  std::string slurm;
};

/// From main's third argument.
EngineGpus EngineGpusOf(char** environment);

struct ChosenGpus {
  std::vector<memory::GpuDescription> gpus;
  std::vector<std::string> notes;  ///< for the log: resources that are left out or limited, and why
};

/// `choice` is "none", UUIDs and indices of `present` separated by commas, or "auto": those of
/// CUDA_VISIBLE_DEVICES; else Slurm's (all, where a control group hides the others); else all. GPUs
/// that no process may use are left out of "auto". NotFound for one that is named and not there,
/// with `reason` when no GPU can be used at all; FailedPrecondition for one that no process may
/// use.
StatusOr<ChosenGpus> ChooseGpus(const std::string& choice, const EngineGpus& engine,
                                const std::vector<memory::GpuDescription>& present,
                                const std::string& reason);

}  // namespace patchbay::workers

#include "workers/jobs/spectra/engine.h"

#include "ops/spectral/spectral_device.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/memory/gpu.h"

namespace patchbay::workers {

StatusOr<std::unique_ptr<ops::SpectralFrames>> MakeSpectraEngine(const TaskContext& context,
                                                                 const SpectraSettings& settings) {
  if (settings.numerics == "cpu") return ops::SpectralFrames::Create(settings);
  if (context.gpu_uuid.empty()) {
    return Unavailable("spectra: numerics cuda: this worker has no GPU");
  }
  PB_ASSIGN_OR_RETURN(const int gpu, memory::GpuIndexOf(context.gpu_uuid));
  return ops::CreateDeviceSpectralFrames(settings, gpu);
}

SpectraPace SpectraPaceOf(const SpectraSettings& settings) {
  SpectraPace pace;
  if (settings.numerics == "cpu") return pace;
  // A launch processes some thousand rows of 64 frames, and the start on a GPU costs a good part of
  // a CPU core's task.
  pace.band_rows = 1024;
  pace.unit_pixels = std::int64_t{1} << 23;
  pace.values_of_a_second *= 8;
  return pace;
}

protocol::Resources SpectraResources(const SpectraSettings& settings) {
  protocol::Resources resources;
  resources.gpus = settings.numerics == "cuda" ? 1 : 0;
  resources.memory_bytes = settings.numerics == "cuda" ? 2 * kStripMemoryBytes : kStripMemoryBytes;
  return resources;
}

Status CheckStripMemory(const SpectraSettings& settings, const MemoryBudget& room) {
  const std::uint64_t bytes = SpectraResources(settings).memory_bytes;
  const Status fits = CheckMemoryFits("measure spectra: a strip", bytes, room);
  if (fits.ok()) return fits;
  constexpr std::uint64_t kMiB = 1 << 20;
  const std::uint64_t enough = (bytes / kMemoryUsePercent * 100 / kMiB + 1) * kMiB;
  Outcome outcome = OutcomeOf(fits);
  outcome.code = static_cast<std::int32_t>(absl::StatusCode::kFailedPrecondition);
  outcome.advice =
      StrCat("raise that limit to ", HumanBytes(enough), " or more",
             settings.numerics == "cuda" ? ", give --numerics cpu, which takes half," : "",
             " or measure it on a node that has more memory; --strip, --frame, --hop and --cpus "
             "change nothing in this");
  return StatusOf(outcome);
}

}  // namespace patchbay::workers

#include "workers/jobs/spectra_engine.h"

#include "ops/spectral_device.h"
#include "runtime/memory/gpu.h"

namespace patchbay::workers {

StatusOr<std::unique_ptr<ops::SpectralFrames>> MakeSpectraEngine(const TaskContext& context,
                                                                 const SpectraSettings& settings) {
  if (settings.numerics == "cpu") return ops::SpectralFrames::Create(settings.spectral);
  if (context.gpu_uuid.empty()) {
    return absl::UnavailableError("spectra: numerics cuda: this worker has no GPU");
  }
  PB_ASSIGN_OR_RETURN(const int gpu, memory::GpuIndexOf(context.gpu_uuid));
  return ops::CreateDeviceSpectralFrames(settings.spectral, gpu);
}

protocol::Resources SpectraResources(const SpectraSettings& settings) {
  protocol::Resources resources;
  resources.gpus = settings.numerics == "cuda" ? 1 : 0;
  return resources;
}

}  // namespace patchbay::workers

#include "workers/jobs/spectra_engine.h"

namespace patchbay::workers {

StatusOr<std::unique_ptr<ops::SpectralFrames>> MakeSpectraEngine(const SpectraSettings& settings) {
  if (settings.numerics == "cpu") return ops::SpectralFrames::Create(settings.spectral);
  return absl::UnimplementedError(
      StrCat("spectra: numerics ", settings.numerics, ": this worker measures on the CPU only"));
}

protocol::Resources SpectraResources(const SpectraSettings& settings) {
  protocol::Resources resources;
  resources.gpus = settings.numerics == "cuda" ? 1 : 0;
  return resources;
}

}  // namespace patchbay::workers

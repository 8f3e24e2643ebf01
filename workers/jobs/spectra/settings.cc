#include "workers/jobs/spectra/settings.h"

#include <string_view>

#include "ops/spectral/spectral_device.h"
#include "ops/spectral/spectral_sums.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/spectra_request.h"
#include "workers/jobs/spectra/spectra_image.h"

namespace patchbay::workers {
namespace {

constexpr int kDefinitionVersion = 1;

}  // namespace

std::string SpectraSettings::Profile() const {
  const std::string_view profile = tissue_only ? "" : SpectralProfileOf(*this);
  return profile.empty() ? "custom" : std::string(profile);
}

results::SpectraDefinition SpectraSettings::Definition() const {
  return {.version = kDefinitionVersion,
          .profile = Profile(),
          .frame = frame,
          .hop = hop,
          .window = std::string(NameOf(window)),
          .prefilter = std::string(NameOf(prefilter)),
          .channel = std::string(NameOf(channel)),
          .tissue_only = tissue_only,
          .skip_damaged = skip_damaged,
          .tissue = tissue_only ? TissueDefinition() : Json(),
          .numerics = numerics,
          .step_db = 1.0 / ops::kSpectralSteps};
}

StatusOr<SpectraSettings> ParseSpectraSettings(const Json& payload) {
  PB_ASSIGN_OR_RETURN(const auto request, ReadPayload<SpectraRequest>(payload, "spectra settings"));
  PB_ASSIGN_OR_RETURN(const plan::SpectralOptions spectral, SpectralOptionsOf(request));
  SpectraSettings s{spectral, request.strip, request.tissue_only, request.skip_damaged};
  if (!request.numerics.empty()) s.numerics = request.numerics;
  if (s.numerics != "cuda" || s.frame == ops::kDeviceSpectralFrame) return s;
  return InvalidArgument("spectra settings: frame: ", s.frame, ": a GPU takes ",
                         ops::kDeviceSpectralFrame, " only (or numerics cpu)");
}

}  // namespace patchbay::workers

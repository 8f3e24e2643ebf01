#include "workers/jobs/spectra/settings.h"

#include <string_view>

#include "ops/spectral/spectral_device.h"
#include "ops/spectral/spectral_sums.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/spectra_request.h"
#include "workers/jobs/spectra/spectra_tissue.h"

namespace patchbay::workers {
namespace {

constexpr int kDefinitionVersion = 1;

}  // namespace

std::string SpectraSettings::Profile() const {
  const std::string_view profile = tissue_only ? "" : SpectralProfileOf(spectral);
  return profile.empty() ? "custom" : std::string(profile);
}

results::SpectraDefinition SpectraSettings::Definition() const {
  return {.version = kDefinitionVersion,
          .profile = Profile(),
          .frame = spectral.frame,
          .hop = spectral.hop,
          .window = std::string(NameOf(spectral.window)),
          .prefilter = std::string(NameOf(spectral.prefilter)),
          .channel = std::string(NameOf(spectral.channel)),
          .tissue_only = tissue_only,
          .skip_damaged = skip_damaged,
          .tissue = tissue_only ? TissueDefinition() : Json(),
          .numerics = numerics,
          .step_db = 1.0 / ops::kSpectralSteps};
}

StatusOr<SpectraSettings> ParseSpectraSettings(const Json& payload) {
  PB_ASSIGN_OR_RETURN(const auto request, ReadPayload<SpectraRequest>(payload, "spectra settings"));
  SpectraSettings s;
  PB_ASSIGN_OR_RETURN(s.spectral, SpectralOptionsOf(request));
  s.strip = request.strip;
  s.tissue_only = request.tissue_only;
  s.skip_damaged = request.skip_damaged;
  if (!request.numerics.empty()) s.numerics = request.numerics;
  if (s.numerics != "cuda" || s.spectral.frame == ops::kDeviceSpectralFrame) return s;
  return InvalidArgument("spectra settings: frame: ", s.spectral.frame, ": a GPU takes ",
                         ops::kDeviceSpectralFrame, " only (or numerics cpu)");
}

Json ToJson(const SpectraSettings& s) {
  Json json = JsonOf(s.spectral);
  json["strip"] = s.strip;
  json["tissue_only"] = s.tissue_only;
  json["skip_damaged"] = s.skip_damaged;
  json["numerics"] = s.numerics;
  return json;
}

}  // namespace patchbay::workers

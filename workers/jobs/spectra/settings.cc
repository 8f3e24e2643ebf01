#include "workers/jobs/spectra/settings.h"

#include <string_view>

#include "ops/spectral/spectral_device.h"
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

Json SpectraSettings::Definition() const {
  Json definition = JsonOf(spectral);
  definition.erase("coefficients");
  definition["version"] = kDefinitionVersion;
  definition["profile"] = Profile();
  definition["tissue_only"] = tissue_only;
  if (tissue_only) definition["tissue"] = TissueDefinition();
  definition["skip_damaged"] = skip_damaged;
  definition["numerics"] = numerics;
  definition["level"] = 0;
  definition["floor_db"] = 0;
  definition["step_db"] = 1.0 / 1024;
  return definition;
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

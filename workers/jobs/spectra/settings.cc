#include "workers/jobs/spectra/settings.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "ops/spectral/spectral_device.h"
#include "runtime/core/strings.h"
#include "workers/jobs/spectra/tissue.h"
#include "workers/jobs/task/settings_json.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "spectra settings";
constexpr std::int64_t kStripMin = 32, kStripMax = 1 << 20;
constexpr int kDefinitionVersion = 1;
/// Those of plan::SpectralOptions first.
constexpr std::array kKeys = {"frame",       "hop",          "window",  "prefilter",
                              "channel",     "coefficients", "profile", "strip",
                              "tissue_only", "skip_damaged", "numerics"};
constexpr std::size_t kSpectralKeys = 6;

using Profile = std::pair<std::string_view, plan::SpectralOptions>;

plan::SpectralOptions NedcOptions() {
  plan::SpectralOptions nedc;
  nedc.prefilter = plan::SpectralPrefilter::kGauss7;
  nedc.channel = plan::SpectralChannel::kRgb;
  return nedc;
}

/// By name; configs/spectra.md says why.
std::array<Profile, 2> Profiles() {
  return {Profile{"default", plan::SpectralOptions{}}, Profile{"nedc", NedcOptions()}};
}

StatusOr<plan::SpectralOptions> OptionsOfProfile(const std::string& wanted) {
  for (const auto& [name, options] : Profiles()) {
    if (name == wanted) return options;
  }
  return absl::InvalidArgumentError(
      StrCat(kWhat, ": profile: '", wanted, "' is neither default nor nedc"));
}

Status CheckOthers(const SpectraSettings& s) {
  if (s.strip < kStripMin || s.strip > kStripMax) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": strip: ", s.strip, " is not in ", kStripMin, "..", kStripMax));
  }
  if (s.numerics != "cpu" && s.numerics != "cuda") {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": numerics: '", s.numerics, "' is neither cpu nor cuda"));
  }
  if (s.numerics == "cuda" && s.spectral.frame != ops::kDeviceSpectralFrame) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": frame: ", s.spectral.frame, ": a GPU takes ",
                                             ops::kDeviceSpectralFrame, " only (or numerics cpu)"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string SpectraSettings::Profile() const {
  plan::SpectralOptions mine = spectral;
  mine.coefficients = false;
  for (const auto& [name, options] : Profiles()) {
    if (options == mine && !tissue_only) return std::string(name);
  }
  return "custom";
}

Json SpectraSettings::Definition() const {
  Json definition = plan::ToJson(spectral);
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
  PB_RETURN_IF_ERROR(CheckSettingKeys(payload, kKeys, kWhat));
  SpectraSettings s;
  std::string profile = "default";
  PB_RETURN_IF_ERROR(ReadSetting(payload, "profile", kWhat, profile));
  PB_ASSIGN_OR_RETURN(const plan::SpectralOptions defaults, OptionsOfProfile(profile));
  Json spectral = plan::ToJson(defaults);
  for (const char* key : std::span(kKeys).first(kSpectralKeys)) {
    if (payload.contains(key)) spectral[key] = payload[key];
  }
  PB_ASSIGN_OR_RETURN(s.spectral, plan::SpectralOptionsFromJson(spectral));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "strip", kWhat, s.strip));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "tissue_only", kWhat, s.tissue_only));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "skip_damaged", kWhat, s.skip_damaged));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "numerics", kWhat, s.numerics));
  PB_RETURN_IF_ERROR(CheckOthers(s));
  return s;
}

Json ToJson(const SpectraSettings& s) {
  Json json = plan::ToJson(s.spectral);
  json["strip"] = s.strip;
  json["tissue_only"] = s.tissue_only;
  json["skip_damaged"] = s.skip_damaged;
  json["numerics"] = s.numerics;
  return json;
}

}  // namespace patchbay::workers

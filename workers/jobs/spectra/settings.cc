#include "workers/jobs/spectra/settings.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "ops/spectral_device.h"
#include "runtime/base/strings.h"
#include "workers/jobs/spectra/tissue.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "spectra settings";
constexpr std::int64_t kStripMin = 32, kStripMax = 1 << 20;
constexpr int kDefinitionVersion = 1;
constexpr std::array kSpectralKeys = {"frame",     "hop",     "window",
                                      "prefilter", "channel", "coefficients"};
constexpr std::array kOtherKeys = {"profile", "strip", "tissue_only", "skip_damaged", "numerics"};

using Profile = std::pair<std::string_view, ops::SpectralOptions>;

ops::SpectralOptions NedcOptions() {
  ops::SpectralOptions nedc;
  nedc.prefilter = ops::SpectralPrefilter::kGauss7;
  nedc.channel = ops::SpectralChannel::kRgb;
  return nedc;
}

/// By name; configs/spectra.md says why.
std::array<Profile, 2> Profiles() {
  return {Profile{"default", ops::SpectralOptions{}}, Profile{"nedc", NedcOptions()}};
}

StatusOr<ops::SpectralOptions> OptionsOfProfile(const std::string& wanted) {
  for (const auto& [name, options] : Profiles()) {
    if (name == wanted) return options;
  }
  return absl::InvalidArgumentError(
      StrCat(kWhat, ": profile: '", wanted, "' is neither default nor nedc"));
}

bool IsOneOf(const std::string& key, const auto& keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* k) { return key == k; });
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
  ops::SpectralOptions mine = spectral;
  mine.coefficients = false;
  for (const auto& [name, options] : Profiles()) {
    if (options == mine && !tissue_only) return std::string(name);
  }
  return "custom";
}

Json SpectraSettings::Definition() const {
  Json definition = ops::ToJson(spectral);
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
  if (!payload.is_object()) return absl::InvalidArgumentError(StrCat(kWhat, ": not an object"));
  SpectraSettings s;
  std::string profile = "default";
  if (payload.contains("profile")) {
    PB_ASSIGN_OR_RETURN(profile, JsonString(payload, "profile", kWhat));
  }
  PB_ASSIGN_OR_RETURN(const ops::SpectralOptions defaults, OptionsOfProfile(profile));
  Json spectral = ops::ToJson(defaults);
  for (const auto& [key, value] : payload.items()) {
    if (IsOneOf(key, kSpectralKeys)) {
      spectral[key] = value;
    } else if (!IsOneOf(key, kOtherKeys)) {
      return absl::InvalidArgumentError(StrCat(kWhat, ": unknown key '", key, "'"));
    }
  }
  PB_ASSIGN_OR_RETURN(s.spectral, ops::SpectralOptionsFromJson(spectral));
  if (payload.contains("strip")) {
    PB_ASSIGN_OR_RETURN(s.strip, JsonInt(payload, "strip", kWhat));
  }
  if (payload.contains("tissue_only")) {
    PB_ASSIGN_OR_RETURN(s.tissue_only, JsonBool(payload, "tissue_only", kWhat));
  }
  if (payload.contains("skip_damaged")) {
    PB_ASSIGN_OR_RETURN(s.skip_damaged, JsonBool(payload, "skip_damaged", kWhat));
  }
  if (payload.contains("numerics")) {
    PB_ASSIGN_OR_RETURN(s.numerics, JsonString(payload, "numerics", kWhat));
  }
  PB_RETURN_IF_ERROR(CheckOthers(s));
  return s;
}

Json ToJson(const SpectraSettings& s) {
  Json json = ops::ToJson(s.spectral);
  json["strip"] = s.strip;
  json["tissue_only"] = s.tissue_only;
  json["skip_damaged"] = s.skip_damaged;
  json["numerics"] = s.numerics;
  return json;
}

}  // namespace patchbay::workers

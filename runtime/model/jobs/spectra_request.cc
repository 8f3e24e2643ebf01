#include "runtime/model/jobs/spectra_request.h"

#include <array>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

using Profile = std::pair<std::string_view, plan::SpectralOptions>;

/// Presets by name; configs/spectra.md gives their reasons.
std::array<Profile, 2> Profiles() {
  plan::SpectralOptions nedc;
  nedc.prefilter = plan::SpectralPrefilter::kGauss7;
  nedc.channel = plan::SpectralChannel::kRgb;
  return {Profile{"default", plan::SpectralOptions{}}, Profile{"nedc", nedc}};
}

}  // namespace

std::vector<Option> SpectraRequest::Options() {
  return {
      {.name = "--profile",
       .help = "preset for the flags below, which override it",
       .target = &profile,
       .choices = {"default", "nedc"}},
      {.name = "--frame",
       .value = "PX",
       .help = "side of a frame, a power of two",
       .target = &frame,
       .min = plan::kMinSpectralFrame,
       .max = plan::kMaxSpectralFrame,
       .unit = "px",
       .otherwise = "256"},
      {.name = "--hop",
       .value = "PX",
       .help = "distance between frames, even",
       .target = &hop,
       .min = 2,
       .max = plan::kMaxSpectralFrame,
       .unit = "px",
       .otherwise = "half a frame"},
      {.name = "--strip",
       .value = "PX",
       .help = "rows of pixels read at once",
       .target = &strip,
       .min = 32,
       .max = 1 << 20,
       .unit = "px"},
      {.name = "--window",
       .help = "window applied to each frame",
       .target = &window,
       .choices = {"rect", "hann"},
       .otherwise = "the profile's"},
      {.name = "--prefilter",
       .help = "filter applied to the slide first",
       .target = &prefilter,
       .choices = {"none", "gauss7"},
       .otherwise = "the profile's"},
      {.name = "--channel",
       .help = "channels to transform",
       .target = &channel,
       .choices = {"grey", "rgb"},
       .otherwise = "the profile's"},
      {.name = "--tissue-only", .help = "measure only frames on tissue", .target = &tissue_only},
      {.name = "--skip-damaged",
       .help = "leave out frames on damaged tiles, not the whole slide",
       .target = &skip_damaged},
      {.name = "--coefficients",
       .help = "also write the mean of every coefficient as .npy files",
       .target = &coefficients},
      {.name = "--numerics",
       .help = "rounding of the CPU or of CUDA",
       .target = &numerics,
       .choices = {"cpu", "cuda"},
       .otherwise = "what the cluster offers"},
  };
}

StatusOr<plan::SpectralOptions> SpectralOptionsOf(const SpectraRequest& request) {
  Json options = JsonOf(plan::SpectralOptions{});
  for (const auto& [name, profile] : Profiles()) {
    if (name == request.profile) options = JsonOf(profile);
  }
  if (request.frame) options["frame"] = *request.frame;
  if (request.hop) options["hop"] = *request.hop;
  if (!request.window.empty()) options["window"] = request.window;
  if (!request.prefilter.empty()) options["prefilter"] = request.prefilter;
  if (!request.channel.empty()) options["channel"] = request.channel;
  options["coefficients"] = request.coefficients;
  return FromJson<plan::SpectralOptions>(options, "spectral");
}

std::string_view SpectralProfileOf(const plan::SpectralOptions& options) {
  plan::SpectralOptions mine = options;
  mine.coefficients = false;
  for (const auto& [name, profile] : Profiles()) {
    if (profile == mine) return name;
  }
  return "";
}

}  // namespace patchbay

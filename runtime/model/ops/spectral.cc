#include "runtime/model/ops/spectral.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

constexpr std::array<std::string_view, 2> kWindows = {"rect", "hann"};
constexpr std::array<std::string_view, 2> kPrefilters = {"none", "gauss7"};
constexpr std::array<std::string_view, 2> kChannels = {"grey", "rgb"};
constexpr std::array<std::string_view, 6> kMembers = {"frame",     "hop",     "window",
                                                      "prefilter", "channel", "coefficients"};
constexpr std::string_view kWhat = "spectral";

Status Refused(const std::string& option, const std::string& value, const std::string& allowed) {
  return InvalidArgument("spectral: ", option, ": ", value, " is not ", allowed);
}

template <typename Enum, std::size_t n>
Status ReadName(const Json& json, const char* key, const std::array<std::string_view, n>& names,
                Enum& out) {
  if (!json.contains(key)) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(json, key, kWhat));
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return Refused(key, name, StrCat(names[0], " or ", names[1]));
  out = static_cast<Enum>(found - names.begin());
  return absl::OkStatus();
}

Status ReadPixels(const Json& json, const char* key, int& out) {
  if (!json.contains(key)) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::int64_t pixels, JsonInt(json, key, kWhat));
  if (pixels < 0 || pixels > kMaxSpectralFrame) {
    return Refused(key, StrCat(pixels), StrCat("within 0 to ", kMaxSpectralFrame));
  }
  out = static_cast<int>(pixels);
  return absl::OkStatus();
}

}  // namespace

Status Validate(const SpectralOptions& options) {
  const int frame = options.frame, hop = options.hop;
  if (frame < kMinSpectralFrame || frame > kMaxSpectralFrame ||
      !std::has_single_bit(static_cast<unsigned>(frame))) {
    return Refused("frame", StrCat(frame),
                   StrCat("a power of two from ", kMinSpectralFrame, " to ", kMaxSpectralFrame));
  }
  if (hop < 2 || hop > frame || hop % 2 != 0) {
    return Refused("hop", StrCat(hop), StrCat("an even number from 2 to the frame, ", frame));
  }
  if (options.window > SpectralWindow::kHann) {
    return Refused("window", StrCat(static_cast<int>(options.window)), "rect or hann");
  }
  if (options.prefilter > SpectralPrefilter::kGauss7) {
    return Refused("prefilter", StrCat(static_cast<int>(options.prefilter)), "none or gauss7");
  }
  if (options.channel > SpectralChannel::kRgb) {
    return Refused("channel", StrCat(static_cast<int>(options.channel)), "grey or rgb");
  }
  return absl::OkStatus();
}

std::string_view NameOf(SpectralWindow window) {
  return kWindows[static_cast<std::size_t>(window)];
}
std::string_view NameOf(SpectralPrefilter prefilter) {
  return kPrefilters[static_cast<std::size_t>(prefilter)];
}
std::string_view NameOf(SpectralChannel channel) {
  return kChannels[static_cast<std::size_t>(channel)];
}

Json ToJson(const SpectralOptions& options) {
  return {{"frame", options.frame},
          {"hop", options.hop},
          {"window", NameOf(options.window)},
          {"prefilter", NameOf(options.prefilter)},
          {"channel", NameOf(options.channel)},
          {"coefficients", options.coefficients}};
}

StatusOr<SpectralOptions> SpectralOptionsFromJson(const Json& json) {
  if (!json.is_object()) return InvalidArgument("spectral: not an object");
  for (const auto& [key, value] : json.items()) {
    if (std::find(kMembers.begin(), kMembers.end(), key) == kMembers.end()) {
      return InvalidArgument("spectral: ", key, ": unknown member");
    }
  }
  SpectralOptions options;
  PB_RETURN_IF_ERROR(ReadPixels(json, "frame", options.frame));
  PB_RETURN_IF_ERROR(ReadPixels(json, "hop", options.hop));
  PB_RETURN_IF_ERROR(ReadName(json, "window", kWindows, options.window));
  PB_RETURN_IF_ERROR(ReadName(json, "prefilter", kPrefilters, options.prefilter));
  PB_RETURN_IF_ERROR(ReadName(json, "channel", kChannels, options.channel));
  if (json.contains("coefficients")) {
    PB_ASSIGN_OR_RETURN(options.coefficients, JsonBool(json, "coefficients", kWhat));
  }
  PB_RETURN_IF_ERROR(Validate(options));
  return options;
}

int SpectralChannels(const SpectralOptions& options) {
  return options.channel == SpectralChannel::kGrey ? 1 : 3;
}

std::int64_t FramesAlong(std::int64_t pixels, const SpectralOptions& options) {
  return pixels < options.frame ? 0 : (pixels - options.frame) / options.hop + 1;
}

int SpectralHalo(const SpectralOptions& options) {
  return options.prefilter == SpectralPrefilter::kNone ? 0 : kGauss7Radius;
}

}  // namespace patchbay::plan

#include "runtime/model/ops/spectral_options.h"

#include <bit>

namespace patchbay::plan {
namespace {

Status CheckNamed(const char* option, std::string_view name) {
  return name.empty() ? InvalidArgument(option, ": no such value") : absl::OkStatus();
}

}  // namespace

Status SpectralOptions::Check() const {
  if (frame < kMinSpectralFrame || frame > kMaxSpectralFrame ||
      !std::has_single_bit(static_cast<unsigned>(frame))) {
    return InvalidArgument("frame: ", frame, " is not a power of two from ", kMinSpectralFrame,
                           " to ", kMaxSpectralFrame);
  }
  if (hop < 2 || hop > frame || hop % 2 != 0) {
    return InvalidArgument("hop: ", hop, " is not an even number from 2 to the frame, ", frame);
  }
  PB_RETURN_IF_ERROR(CheckNamed("window", NameOf(window)));
  PB_RETURN_IF_ERROR(CheckNamed("prefilter", NameOf(prefilter)));
  return CheckNamed("channel", NameOf(channel));
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

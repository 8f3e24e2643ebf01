// A request of `patchbay spectra`: its flags, and the payload of its root task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/jobs/option.h"
#include "runtime/model/ops/spectral_options.h"

namespace patchbay {

/// Options that are absent or empty are the profile's.
struct SpectraRequest {
  std::string profile = "default";
  std::optional<std::int64_t> frame, hop;  ///< pixels
  /// Rows of pixels in one task of a slide; larger means fewer, longer tasks. Does not affect the
  /// results.
  std::int64_t strip = 1024;
  std::string window, prefilter, channel;
  bool tissue_only = false;   ///< only frames that lie on tissue
  bool skip_damaged = false;  ///< leave out frames on a damaged tile instead of their slide
  bool coefficients = false;
  std::string numerics;  ///< "cpu" or "cuda": the rounding to use

  /// The table of options, bound to this value.
  std::vector<Option> Options();
};

/// The spectra that are asked for: the profile's, and options in place of it. A frame without a hop
/// has the hop of the profile. InvalidArgument where frame and hop do not go together.
StatusOr<plan::SpectralOptions> SpectralOptionsOf(const SpectraRequest& request);

/// The name of the profile with these options, coefficients aside; "" for none.
std::string_view SpectralProfileOf(const plan::SpectralOptions& options);

}  // namespace patchbay

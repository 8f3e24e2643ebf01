// The fit of an image's stains from the histogram of its colours: Macenko with the choices of
// cuCIM, and Reinhard. Pure: equal histograms give equal bits.
//
// Over the tissue, which is every colour whose optical density is above kStainTissueOd in any
// channel:
//   Macenko: covariance of the densities (ddof 1); its two leading eigenvectors, red made positive;
//     the angles of the densities in their plane; the 1st and 99th percentile give both stains, the
//     one with more red is hematoxylin; concentrations by least squares; their 99th percentile.
//   Reinhard: mean and population deviation in L*a*b*.
// Percentiles are linear between neighbours (NumPy's default), weighted by pixels. Colours of pens
// are left out where they are more than plan::kLeastPen of the tissue.
#pragma once

#include <cstdint>
#include <functional>

#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/model/ops/stain_evidence.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

/// An image with fewer pixels of tissue shows dust, not stain.
inline constexpr std::uint64_t kLeastStainPixels = 100;

/// The pixels that count as tissue. The defaults are cuCIM's; published numbers of other packages
/// need other values.
struct StainFitOptions {
  double tissue_od = plan::kStainTissueOd;  ///< Macenko's beta; larger means darker pixels only
  /// Macenko's alpha: the percentile of the angles that gives one stain, as 100 less it the other.
  double angle_percentile = 1;
  double white = plan::kStainWhite;  ///< grey level from which on a channel has no density
  bool every_channel = false;        ///< above it in every channel, not in any
  /// Concentrations over every pixel, as packages that fit single tiles do. A slide is mostly
  /// background, which would decide them.
  bool concentrations_of_all = false;
  /// Density as histolab has it: -ln((I + 1) / white), below 0 for brighter pixels.
  bool plus_one = false;
  /// Turns counted levels of red, green and blue (0 to 255) into sRGB before anything else; empty:
  /// they are sRGB.
  std::function<void(float (&rgb)[3])> to_srgb = {};
};

/// A fit, and what its colours show beside it.
struct JudgedStains {
  plan::StainFit fit;
  plan::StainEvidence evidence;
};

/// Never an error: a fit that fails states why in its fallback and carries the default numbers.
/// `progress` is called on this thread between its steps: millions of colours take seconds.
JudgedStains JudgeStains(
    const StainHistogram& histogram, const StainFitOptions& options = {},
    const std::function<void()>& progress = [] {});
inline plan::StainFit FitStains(
    const StainHistogram& histogram, const StainFitOptions& options = {},
    const std::function<void()>& progress = [] {}) {
  return JudgeStains(histogram, options, progress).fit;
}

/// The fit with its numbers rounded to nine decimals, on which different C libraries agree. Use it
/// for fits that are stored.
plan::StainFit Rounded(const plan::StainFit& fit);

/// The histogram's intensities as L*a*b*.
std::array<double, 3> LabOf(double red, double green, double blue);

}  // namespace patchbay::ops

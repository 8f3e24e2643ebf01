// Stain parameters of one image: the numbers that stain normalisation maps from, and to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/described.h"

namespace patchbay::plan {

/// Divisor of intensities before the logarithm: OD = -ln(clip(I, 1, kStainWhite) /
/// kStainWhite).
inline constexpr double kStainWhite = 240;
/// A pixel is tissue when the OD of any channel is above it: 0.15 in decadic units.
inline constexpr double kStainTissueOd = 0.345;

/// The reason for which an image has no fit of its own.
enum class StainFallback : std::uint8_t {
  kNone,             ///< no fallback: the image has a fit
  kTooFewPixels,     ///< hardly any tissue: a blank slide
  kOneStain,         ///< the colours lie on a line, or both stains are the same direction
  kNoConcentration,  ///< one of the stains is not there
};

/// "none", "too_few_pixels", "one_stain", "no_concentration".
std::string_view NameOf(StainFallback fallback);
std::optional<StainFallback> StainFallbackFromName(std::string_view name);

/// Macenko: two directions in optical density and how much of each there is. Columns of the usual
/// 3 x 2 matrix are the rows here.
struct MacenkoFit {
  /// [hematoxylin, eosin][red, green, blue]: unit vectors; hematoxylin has the larger red.
  std::array<std::array<double, 3>, 2> stains{};
  /// The 99th percentile of each stain's concentration over the tissue.
  std::array<double, 2> max_concentrations{};
  /// The reason for which the numbers are those of DefaultMacenko; kNone: they are fitted.
  StainFallback fallback = StainFallback::kNone;

  bool operator==(const MacenkoFit&) const = default;
};

/// Reinhard: mean and population standard deviation of the tissue in CIE L*a*b* (D65, 2 degrees,
/// from sRGB): L 0 to 100, a and b around 0.
struct ReinhardFit {
  std::array<double, 3> mean{}, std{};
  /// The reason for which the numbers are those of DefaultReinhard; kNone: they are fitted.
  StainFallback fallback = StainFallback::kNone;

  bool operator==(const ReinhardFit&) const = default;
};

/// The reference that cuCIM, torchstain, PathML and MONAI ship.
MacenkoFit DefaultMacenko();
/// Measured on a public TCGA tile of breast tissue, 512 x 512 at 20x.
ReinhardFit DefaultReinhard();

/// Fits of one image; both, so that a store serves either profile.
struct StainFit {
  MacenkoFit macenko;
  ReinhardFit reinhard;
  std::uint64_t tissue_pixels = 0, pixels = 0;

  bool operator==(const StainFit&) const = default;
  static constexpr auto Fields() {
    using T = StainFit;
    return AsFullObject(Field("pixels", &T::pixels), Field("tissue_pixels", &T::tissue_pixels),
                        Field("macenko", &T::macenko), Field("reinhard", &T::reinhard));
  }
};

/// The flat lists a config and a plan hold: hematoxylin's r, g, b, eosin's r, g, b, the two
/// concentrations; the three means, the three deviations.
inline constexpr std::size_t kMacenkoValues = 8, kReinhardValues = 6;
Json ValuesOf(const MacenkoFit& fit);
Json ValuesOf(const ReinhardFit& fit);
/// InvalidArgument unless all numbers are present and plausible: different unit vectors (to 1e-3),
/// hematoxylin first; concentrations and deviations above 0. The fallback is kNone.
StatusOr<MacenkoFit> MacenkoFromValues(const Json& values);
StatusOr<ReinhardFit> ReinhardFromValues(const Json& values);

}  // namespace patchbay::plan

namespace patchbay {

template <>
struct JsonForm<plan::StainFallback> : JsonNames<plan::StainFallback, plan::StainFallbackFromName> {
};
/// {"values", "fallback"?}
template <>
struct JsonForm<plan::MacenkoFit> {
  static Json To(const plan::MacenkoFit& fit);
  static StatusOr<plan::MacenkoFit> From(const Json& json);
};
template <>
struct JsonForm<plan::ReinhardFit> {
  static Json To(const plan::ReinhardFit& fit);
  static StatusOr<plan::ReinhardFit> From(const Json& json);
};

}  // namespace patchbay

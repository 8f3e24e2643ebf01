// The distance between neighbouring pixels: one value and one unit an axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace patchbay {

/// The lengths OME-NGFF axes are given in.
enum class LengthUnit : std::uint8_t {
  kAngstrom,
  kNanometer,
  kMicrometer,
  kMillimeter,
  kCentimeter,
  kMeter,
};

/// The UDUNITS name: "micrometer", "millimeter", ...
std::string_view NameOf(LengthUnit unit);
/// nullopt for a name that is not a length of the list.
std::optional<LengthUnit> LengthUnitFromName(std::string_view name);
/// Micrometres in one unit.
double MicrometresIn(LengthUnit unit);

/// Along one axis.
struct AxisSpacing {
  double value = 0;  ///< positive and finite
  LengthUnit unit = LengthUnit::kMicrometer;

  bool operator==(const AxisSpacing&) const = default;
  double Micrometres() const { return value * MicrometresIn(unit); }
};

/// Axes of which nothing is known have none.
struct Spacing {
  std::optional<AxisSpacing> z, y, x;

  bool operator==(const Spacing&) const = default;
  /// Micrometres per pixel: the mean of y and x; nullopt unless both are known.
  std::optional<double> MeanMpp() const;
};

/// The spacing of a 2-D image in micrometres per pixel.
Spacing SpacingOfMpp(std::optional<double> y, std::optional<double> x);

}  // namespace patchbay

#include "runtime/model/ops/stain_evidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

using Vector = std::array<double, 3>;

constexpr double kMostPen = 0.5;
/// Fluorescence is bright on black: a tile full of tissue is brighter than this.
constexpr double kLeastBackground = 140;
constexpr double kMostDegrees = 40;     ///< from either reference stain
constexpr double kLeastDegrees = 7;     ///< between both stains
constexpr double kLeastPart = -0.25;    ///< the least red, green or blue of a stain
constexpr double kMostBlueness = 0.05;  ///< blue less green of eosin; DAB has about 0.4
/// Red less green of hematoxylin, where blue less green is above the second; a green pen has 0.5
/// and 0.04, blue hematoxylin 0.4 and -0.2.
constexpr double kMostRedness = 0.35, kLeastBlueOfRed = -0.05;
constexpr double kMostConcentration = 8;
constexpr double kLeastExplained = 0.5;

std::string Fixed(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

double DegreesBetween(const Vector& a, const Vector& b) {
  const double cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const double lengths = std::hypot(a[0], a[1], a[2]) * std::hypot(b[0], b[1], b[2]);
  return std::acos(std::clamp(cosine / lengths, -1.0, 1.0)) * 180 / std::numbers::pi;
}

std::string Percent(double share) { return StrCat(Fixed(100 * share, 1), " %"); }

std::string ReasonOfPixels(const StainEvidence& evidence) {
  if (evidence.pen > kMostPen) {
    return StrCat("pen or marker is ", Percent(evidence.pen), " of its tissue");
  }
  if (evidence.background < kLeastBackground) {
    return StrCat("its background is dark (", Fixed(evidence.background, 0), " of 255)");
  }
  return "";
}

std::string ReasonOfFit(const MacenkoFit& fit, const std::array<double, 2>& degrees) {
  const auto& [first, second] = fit.stains;
  if (second[2] - second[1] > kMostBlueness) {
    return "its second stain absorbs more blue than green, as DAB does and eosin does not";
  }
  if (degrees[0] > kMostDegrees) return "its first stain is not hematoxylin";
  if (first[0] - first[1] > kMostRedness && first[2] - first[1] > kLeastBlueOfRed) {
    return "its first stain lets green through, as a green pen does";
  }
  if (degrees[1] > kMostDegrees) return "its second stain is not eosin";
  if (DegreesBetween(first, second) < kLeastDegrees) {
    return StrCat("its stains are ", Fixed(DegreesBetween(first, second), 1), " degrees apart");
  }
  const double least = std::min(*std::min_element(first.begin(), first.end()),
                                *std::min_element(second.begin(), second.end()));
  if (least < kLeastPart) return StrCat("a stain has the negative part ", Fixed(least, 2));
  const double most =
      *std::max_element(fit.max_concentrations.begin(), fit.max_concentrations.end());
  return most > kMostConcentration ? StrCat("a stain's amount reaches ", Fixed(most, 2)) : "";
}

std::string TextOf(std::string_view name, const Vector& stain, double degrees, double most) {
  return StrCat(name, " ", Fixed(stain[0], 3), " ", Fixed(stain[1], 3), " ", Fixed(stain[2], 3),
                ", ", Fixed(degrees, 0), " degrees from the reference, up to ", Fixed(most, 2));
}

}  // namespace

std::string MisfitOf(const StainFit& fit, const std::optional<StainEvidence>& evidence) {
  const MacenkoFit& macenko = fit.macenko;
  const bool is_fitted = macenko.fallback == StainFallback::kNone;
  const auto reference = DefaultMacenko().stains;
  const std::array<double, 2> degrees = {DegreesBetween(macenko.stains[0], reference[0]),
                                         DegreesBetween(macenko.stains[1], reference[1])};
  std::string reason = evidence ? ReasonOfPixels(*evidence) : "";
  if (reason.empty() && is_fitted) reason = ReasonOfFit(macenko, degrees);
  if (reason.empty() && is_fitted && evidence && evidence->explained < kLeastExplained) {
    reason = "its stains explain too little of it";
  }
  if (reason.empty()) return "";
  std::string numbers =
      is_fitted
          ? StrCat(
                TextOf("hematoxylin", macenko.stains[0], degrees[0], macenko.max_concentrations[0]),
                "; ", TextOf("eosin", macenko.stains[1], degrees[1], macenko.max_concentrations[1]))
          : StrCat("no fit: ", NameOf(macenko.fallback));
  if (evidence) {
    numbers +=
        StrCat("; ", is_fitted ? StrCat(Percent(evidence->explained), " explained, ") : "",
               "background ", Fixed(evidence->background, 0), ", pen ", Percent(evidence->pen));
  }
  return StrCat("not H&E: ", reason, " (", numbers, ")");
}

}  // namespace patchbay::plan

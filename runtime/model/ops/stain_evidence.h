// Whether the colours of an image are those of hematoxylin and eosin, judged by its stain fit.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/fields.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::plan {

/// Facts about the colours of an image that its fit does not show; stored beside it.
struct StainEvidence {
  /// Share of the fitted pixels that are mixtures of both stains, within kExplainedResidual.
  double explained = 0;
  /// The level, of 255, that all channels of the brightest hundredth of the pixels reach.
  double background = 0;
  /// Share of the tissue in colours of pens; above kLeastPen the fit leaves them out.
  double pen = 0;

  bool operator==(const StainEvidence&) const = default;
  static constexpr auto Fields() {
    using T = StainEvidence;
    return AsFullObject(Field("explained", &T::explained), Field("background", &T::background),
                        Field("pen", &T::pen));
  }
};

/// The most that a pixel may lie beside the plane of its stains, and the most negative amount of a
/// stain, as parts of its optical density.
inline constexpr double kExplainedResidual = 0.3, kExplainedNegative = 0.2;
/// A stain is the first or the last percent of the angles: ink of that share would be one.
inline constexpr double kLeastPen = 0.008;

/// "not H&E: REASON (the numbers)"; empty where nothing speaks against H&E. Without `evidence`, in
/// stores of earlier versions, the fit alone is judged. An image whose fit fell back is judged by
/// its background and by pen alone. The limits and how often they are wrong: configs/stain.md.
std::string MisfitOf(const StainFit& fit, const std::optional<StainEvidence>& evidence);

}  // namespace patchbay::plan

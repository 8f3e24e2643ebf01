// affine and elastic: what a patch draws, and the border rule. Bilinear; bits do not depend on the
// width of the processor's registers.
#pragma once

#include <cstdint>

#include "ops/geometry/sample_map.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/affine.h"
#include "runtime/model/ops/elastic.h"

namespace patchbay::ops {

/// A linear map of places: y = yy i + yx j + y0, x = xy i + xx j + x0.
struct PlaceMap {
  double yy = 1, yx = 0, y0 = 0;
  double xy = 0, xx = 1, x0 = 0;

  /// This map of what `inner` gives.
  PlaceMap After(const PlaceMap& inner) const;
  bool IsIdentity() const;
};

/// Where the finished pixels of a height x width image come from: word 0 of the key's first block
/// decides whether anything changes, words 1 to 3 are angle, scale and shear; words 0 and 1 of the
/// second block shift along y and x.
PlaceMap DrawAffine(const plan::AffineOptions& options, const DrawKey& key, std::int64_t height,
                    std::int64_t width);

/// Word 0 of the key's first block decides whether anything changes; block i of its field stream
/// has the displacement of control point i along y (word 0) and x (word 1). The outer two of each
/// end are 0. Requires options that passed CheckFolding.
ElasticField DrawElastic(const plan::ElasticOptions& options, const DrawKey& key);

BorderFold FoldOf(plan::Border border, std::int64_t pixels);

/// Uniform in the range, from 32 bits.
double Drawn(const plan::DrawRange& range, std::uint32_t word);

}  // namespace patchbay::ops

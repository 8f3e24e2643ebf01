// The geometry of a chain: every op that moves pixels, composed for a patch into one map, whole
// pixels or between them. A part of chain.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "ops/affine/affine.h"
#include "ops/chain/patch_geometry.h"
#include "ops/crop/crop.h"
#include "ops/elastic/elastic.h"
#include "ops/flip/flip.h"
#include "ops/rotate90/rotate90.h"
#include "runtime/core/extent.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::ops {

/// Immutable once every step is added.
class GeometryProgram {
 public:
  GeometryProgram() = default;
  explicit GeometryProgram(const Extent& patch) : patch_(patch) {}

  /// A step whose needs say `moves`.
  void Add(const plan::OpStep& step);

  std::int64_t margin_y() const { return margin_y_; }
  std::int64_t margin_x() const { return margin_x_; }
  /// Some patch may be sampled between pixels.
  bool samples_between() const { return samples_between_; }

  /// A pure function of the key.
  PatchGeometry Draw(const DrawKey& key) const;

 private:
  struct Step {
    std::uint32_t occurrence = 0;  ///< plan::Occurrence: part of its draw key
    std::variant<FlipOptions, Rotate90Options, CropOptions, AffineOptions, ElasticOptions> op;
  };

  Extent patch_;
  std::int64_t margin_y_ = 0, margin_x_ = 0;
  bool samples_between_ = false;
  Border border_ = Border::kReflect101;
  std::vector<Step> steps_;
};

}  // namespace patchbay::ops

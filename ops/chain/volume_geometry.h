// flip, affine and elastic of a volume, composed for a patch into one map of voxels. A pure
// function of the key and the image's facts.
#pragma once

#include <optional>
#include <vector>

#include "ops/affine/affine.h"
#include "ops/draws/draws.h"
#include "ops/elastic/elastic.h"
#include "ops/flip/flip.h"
#include "ops/geometry/volume_map.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

/// The largest box that is read for a patch, in voxels.
inline constexpr std::int64_t kMaxSourceVoxels = std::int64_t{1} << 28;

/// Immutable once every step is added.
class VolumeMoves {
 public:
  VolumeMoves() = default;
  explicit VolumeMoves(const Extent& patch) : patch_(patch) {}

  /// A step whose needs say `moves`, and that passed plan::CheckVolumeChain.
  void Add(const plan::OpStep& step);

  /// A pure function of its arguments.
  VolumeGeometry Draw(const DrawKey& key, const plan::VolumeFacts& facts) const;

  /// InvalidArgument when an elastic would fold patches of an image, or the source box of one could
  /// exceed kMaxSourceVoxels.
  Status CheckImage(const plan::VolumeFacts& facts) const;

  /// Control points of elastic along each axis; 0 without it.
  int points() const { return elastic_ ? elastic_->options.points : 0; }

 private:
  plan::PerAxis AmplitudeOf(const plan::VolumeFacts& facts) const;

  Extent patch_;
  std::vector<DrawnOp<FlipOptions>> flips_;
  std::vector<DrawnOp<AffineOptions>> affines_;
  std::optional<DrawnOp<ElasticOptions>> elastic_;
};

}  // namespace patchbay::ops

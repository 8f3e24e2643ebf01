// flip, affine and elastic of a volume, composed for a patch into one map of voxels. A pure
// function of the key and of what is known of the image.
#pragma once

#include <optional>
#include <vector>

#include "ops/intensity/drawn_op.h"
#include "ops/volume/volume_map.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/affine.h"
#include "runtime/model/ops/elastic.h"
#include "runtime/model/ops/flip.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

/// What affine draws for a volume. Source = centre + T (place - centre) in millimetres, (z, y, x)
/// order, T = diag(1 / scale) Bz By Bx, where each B turns the plane of the two other axes, first
/// axis before second, by [[cos, -sin], [sin, cos]].
struct VolumeTurn {
  double degrees[3] = {};       ///< about z, y, x; 0 where an axis that it turns has one voxel
  double scale[3] = {1, 1, 1};  ///< one factor; 1 along axes of one voxel
};

/// Word 0 of the key's first block: whether; words 1 to 3: the angles; word 0 of the second: the
/// scale. A patch of one slice stays in it, along any axis.
std::optional<VolumeTurn> DrawTurn(const plan::AffineOptions& options, const DrawKey& key,
                                   const Extent& patch);

/// Words 0 to 2 of the key's first block decide z, y and x, or for a flip without axes words 0 and
/// 1 x and y, as in a 2-D image.
void DrawMirrors(const plan::FlipOptions& options, const DrawKey& key, bool (&mirrored)[3]);

/// Block (z points + y) points + x of the key's field stream has the moves of that control point
/// along z, y and x in words 0 to 2. The outer two of each end stay. `amplitude` is in finished
/// voxels.
VolumeField DrawField(const plan::ElasticOptions& options, const DrawKey& key,
                      const plan::PerAxis& amplitude, const Extent& patch);

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

  /// InvalidArgument when an elastic would fold patches of an image, or what may be read for one is
  /// more than kMaxSourceVoxels.
  Status CheckImage(const plan::VolumeFacts& facts) const;

  /// Control points of elastic along each axis; 0 without it.
  int points() const { return elastic_ ? elastic_->options.points : 0; }

 private:
  plan::PerAxis AmplitudeOf(const plan::VolumeFacts& facts) const;

  Extent patch_;
  std::vector<DrawnOp<plan::FlipOptions>> flips_;
  std::vector<DrawnOp<plan::AffineOptions>> affines_;
  std::optional<DrawnOp<plan::ElasticOptions>> elastic_;
};

}  // namespace patchbay::ops

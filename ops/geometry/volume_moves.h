// The geometry of the patches of volumes: ops compose their draws into one map of voxels. A pure
// function of the key and the image's facts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "ops/geometry/patch_maps.h"
#include "runtime/core/box.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

/// The largest box that is read for a patch, in voxels.
inline constexpr std::int64_t kMaxSourceVoxels = std::int64_t{1} << 28;

/// Displacements at control points, (points, points, points) of each axis, in finished voxels.
struct VolumeField {
  int points = 0;  ///< along each axis; 0: the patch stays as it is
  std::vector<float> moves[3];
  /// 1 / distance of the control points, in 1 / finished voxels; 0 along an axis of one voxel.
  float inverse_spacing[3] = {};
};

/// The drawn geometry of one patch of a volume.
struct VolumeGeometry {
  /// The box to read, in voxels relative to the first voxel of the patch's own box.
  Box source;
  /// True: voxels are moved unchanged, mirrored along the axes of `mirrored` (z, y, x). False: each
  /// is interpolated from eight at the place that the field and then the map compute.
  bool whole_voxels = true;
  bool mirrored[3] = {};
  VoxelMap map;
  VolumeField field;
  /// Deviation, in source voxels, of the Gaussian applied before the map; 0: none.
  double smooth[3] = {};
};

using VoxelMatrix = std::array<std::array<double, 3>, 3>;
inline constexpr VoxelMatrix kSameVoxels = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
VoxelMatrix Product(const VoxelMatrix& a, const VoxelMatrix& b);

inline std::array<double, 3> ArrayOf(const plan::PerAxis& v) { return {v.z, v.y, v.x}; }
inline std::array<std::int64_t, 3> ArrayOf(const Extent& e) { return {e.z, e.y, e.x}; }

/// The geometry of one patch in the making.
struct VolumeComposition {
  const Extent& patch;
  const plan::VolumeFacts& facts;    ///< facts of its image
  bool mirrored[3] = {};             ///< z, y, x; after everything else
  VoxelMatrix matrix = kSameVoxels;  ///< map of finished voxels, about the patch's centre
  bool is_turned = false;            ///< the matrix is another, or was
  VolumeField field = {};            ///< before everything else

  /// A matrix that is applied before those so far.
  void Turn(const VoxelMatrix& m) {
    matrix = Product(matrix, m);
    is_turned = is_turned || matrix != kSameVoxels;
  }
};

/// How far the patches of an image may reach.
struct VolumeReach {
  std::array<double, 3> moves = {};  ///< finished voxels along z, y and x
  bool turns = false;                ///< about the centre, by any angle
  double spread = 1;                 ///< times as far from the centre as in the patch
};

/// Every op of a chain that moves voxels. Immutable once all are added.
class VolumeMoves {
 public:
  struct Move {
    std::uint32_t occurrence = 0;  ///< plan::Occurrence: part of its draw key
    /// Composes the draws of one op, whose own key it gets.
    std::function<void(const DrawKey& key, VolumeComposition& composition)> compose;
    /// Adds to the reach; may refuse an image. Empty: patches reach no farther.
    std::function<Status(const plan::VolumeFacts& facts, VolumeReach& reach)> reach = {};
  };

  explicit VolumeMoves(const Extent& patch) : patch_(patch) {}

  void Add(Move move) { moves_.push_back(std::move(move)); }
  /// Some patch has a field of so many control points along each axis.
  void SetPoints(int points) { points_ = points; }
  int points() const { return points_; }

  /// A pure function of its arguments.
  VolumeGeometry Draw(const DrawKey& key, const plan::VolumeFacts& facts) const;

  /// InvalidArgument when an op refuses the image, or the source box of one of its patches could
  /// exceed kMaxSourceVoxels.
  Status CheckImage(const plan::VolumeFacts& facts) const;

 private:
  Extent patch_;
  int points_ = 0;
  std::vector<Move> moves_;
};

}  // namespace patchbay::ops

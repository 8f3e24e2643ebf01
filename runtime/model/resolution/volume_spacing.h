// patch.spacing: which level of a volume patches are cut from, and how many of its voxels become
// one patch. Decided while planning.
#pragma once

#include <span>

#include "runtime/core/extent.h"
#include "runtime/core/spacing.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/volume_facts.h"
#include "runtime/model/resolution/magnification.h"

namespace patchbay::plan {

inline constexpr double kMinSpacingMm = 0.001, kMaxSpacingMm = 1'000;
/// Voxels of a level for one of a patch, along an axis. Larger means more is read for a patch.
inline constexpr double kMaxStep = 16;
inline constexpr double kMinStep = 1 / 64.0;
/// Whether a patch can be made so.
bool IsStep(const PerAxis& step);

/// nnU-Net's separate z: the one coarse axis (0 = z) of voxels whose largest side is more than 3
/// times the smallest, of `from` or else of `to`, in millimetres. kNoAxis where there is none, or
/// two are as coarse.
int CoarseAxis(const PerAxis& from, const PerAxis& to);

/// The key `patch.resample`.
config::Key ResampleKey();
/// Whether its value, which passed the table, asks for separate z.
bool SeparatesZ(const Json& resample);
/// InvalidArgument where it does, for a config without a spacing.
Status CheckTogether(const Json& resample);
Json ResampleToJson(bool separate_z);

/// The spacing that a run config asks for.
struct WantedSpacing {
  PerAxis mm;               ///< from voxel to voxel of a patch
  double tolerance = 0.05;  ///< share of mm. Larger means fewer patches are resampled
  bool upsample = false;    ///< whether a spacing below the finest level's is made all the same
  Extent patch;             ///< voxels, as the trainer receives them
  bool separate_z = false;  ///< whether CoarseAxis is resampled to the nearest voxel

  bool operator==(const WantedSpacing&) const = default;
};

/// How patches are cut from a volume of the dataset.
struct ChosenSpacing {
  PlannedView view;
  PerAxis spacing;             ///< millimetres from voxel to voxel of a finished patch
  PerAxis step;                ///< voxels of the level for one of a patch
  int nearest_axis = kNoAxis;  ///< VolumeFacts::nearest_axis
};

/// A level of a volume.
struct VolumeLevel {
  Extent size;
  PerAxis downsample;  ///< voxels of the finest level for one; whole numbers
};

/// The level within the tolerance along all axes that is nearest, as it is; else the coarsest that
/// is along no axis coarser than both the spacing and the finest level, from which patches of
/// exactly that spacing are resampled. InvalidArgument naming the key for a volume whose spacing is
/// unknown, one that is coarser than asked without upsample, and steps out of kMinStep..kMaxStep.
StatusOr<ChosenSpacing> ChooseSpacing(const WantedSpacing& wanted,
                                      std::span<const VolumeLevel> levels, const Spacing& spacing);

/// Millimetres from voxel to voxel of a level; `spacing` is the finest's. InvalidArgument where the
/// volume does not state them.
StatusOr<PerAxis> SpacingOfLevel(const Spacing& spacing, const VolumeLevel& level);

}  // namespace patchbay::plan

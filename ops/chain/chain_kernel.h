// Arguments of the chain's kernels, as plain values. The parameters of patches lie in device
// memory. Kernels are compiled as C++17. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/chain/any_step.h"
#include "ops/geometry/blur.h"
#include "ops/geometry/patch_maps.h"
#include "ops/intensity/patch_stats.h"
#include "ops/lanes/cast_bits.h"

struct CUstream_st;

namespace patchbay::ops {

/// Slices, or patches, in one launch.
inline constexpr int kLaunchSlices = 64;

/// The types of source values that kernels read.
enum class SourceType : std::int32_t { kUint8, kUint16, kInt16, kFloat32 };

/// An Extent as kernels take it.
struct DeviceExtent {
  std::int64_t z = 1, y = 0, x = 0;

  PB_HOST_DEVICE std::int64_t Rows() const { return z * y; }
  PB_HOST_DEVICE std::int64_t Voxels() const { return Rows() * x; }
};

/// Values that all slices of a launch by tables share.
struct SliceShape {
  std::int64_t height = 0, width = 0;                ///< size of a finished slice
  std::int64_t source_height = 0, source_width = 0;  ///< size of a slice of the source box
  std::int64_t channel_elements = 0;  ///< planar: elements from one channel to the next
  int channels = 3;
  bool planar = true;  ///< a channel's elements lie one after another
  CastTo to = CastTo::kFloat32;
};

/// A slice whose pixels move as they are.
struct MovedSlice {
  const std::byte* d_source = nullptr;  ///< (height, width, channels), contiguous
  std::byte* d_out = nullptr;           ///< its first element
  WindowMap window;
};

/// A launch by tables: sources of uint8.
struct TableLaunch {
  SliceShape shape;
  const MovedSlice* d_slices = nullptr;
  int count = 0;
  const std::uint32_t* d_table = nullptr;  ///< 256 entries a channel
};

/// Values that all patches of a launch share.
struct PatchShape {
  DeviceExtent patch;
  int channels = 3;
  bool planar = true;  ///< a channel's elements lie one after another
  bool in_depth = false;
  CastTo to = CastTo::kFloat32;
  SourceType source = SourceType::kUint8;
};

/// A Gaussian along one axis; radius 0: none.
struct DeviceBlur {
  int radius = 0;
  const float* d_weight = nullptr;  ///< 2 radius + 1
};

/// The source of a patch's values: (z, y, x, channels) of `source`, contiguous.
struct DeviceGeometry {
  const std::byte* d_source = nullptr;
  DeviceExtent source;
  const PatchGeometry* d_plane = nullptr;  ///< geometry of images, the same for every slice
  // Volumes alone.
  bool whole_voxels = true;
  bool mirrored[3] = {};
  VoxelMap map;
  int points = 0;  ///< points of the field along each axis; 0: no voxel moves
  float inverse_spacing[3] = {};
  const float* d_moves = nullptr;  ///< (3, points, points, points): along z, y and x
  DeviceBlur smooth[3];
  /// Two of the source in float where any axis is smoothed, or null; the first ends up as the block
  /// that is sampled.
  float* d_smooth[2] = {};
};

/// The most that a curve of a reduction takes.
inline constexpr std::size_t kCurveBytes = 64;

/// A pass over a patch in scratch, or the gather, and the point-wise steps that are fused with it.
struct DevicePass {
  WholeForm form = WholeForm::kNone;  ///< kNone: the gather, or a pass that this patch skips
  int begin = 0, end = 0;             ///< the steps that follow
  bool to_slot = false;
  bool sums_grey = false;  ///< a step about the mean grey follows
  float white = 255;       ///< white level of that step, where one follows
  int from = 0, to = 0;    ///< planes
  int before = -1;         ///< the slot whose lines are not applied yet to the values that are read
  bool has_lines = false;  ///< it results in lines, which the next pass that reads applies
  bool finishes = false;   ///< no other does: they take a pass of their own
  AnyReduction reduction;
  bool retains = false, inverts = false;  ///< parameters of a curve
  DeviceBlur blur;
  bool along[3] = {};
  const CoarseTap* d_taps = nullptr;  ///< taps of z, then y, then x
};

/// A patch: its source and its draws.
struct DeviceProgram {
  DeviceGeometry geometry;
  std::byte* d_out = nullptr;
  const AnyPointStep* d_steps = nullptr;
  const DevicePass* d_passes = nullptr;  ///< the gather's, then one of every slot
  /// (channels, z, y, x) each, where there is a pass after the gather.
  float* d_planes[2] = {};
  PatchSums* d_row_sums = nullptr;       ///< (channels, z, y)
  LineWithin* d_lines = nullptr;         ///< (slots, channels)
  PatchStats* d_before = nullptr;        ///< (channels) before the curve that is being made
  std::byte* d_curves = nullptr;         ///< (channels) of it, in their type
  unsigned long long* d_grey = nullptr;  ///< (z): the sum of each slice in steps of 2^-16
};

/// A launch of up to kLaunchSlices patches.
struct PatchLaunch {
  PatchShape shape;
  const DeviceProgram* d_patches = nullptr;
  int count = 0;
  bool smooths = false;            ///< any of its sources
  std::int64_t smooth_voxels = 0;  ///< voxels of the largest smoothed source, all channels
};

/// Parameters that the patches of a launch have in one slot: all of them, some, or other
/// parameters.
struct WholeRun {
  WholeForm form = WholeForm::kNone;
  int slot = 0;
  bool along[3] = {};
  bool retains = false, finishes = false;  ///< any of them
};

/// Each queues its kernels and returns CUDA's error number. None synchronises.
int LaunchTables(const TableLaunch& launch, CUstream_st* stream);
/// From the sources to the slots, or to the planes of patches that need further passes.
int LaunchGather(const PatchLaunch& launch, CUstream_st* stream);
int LaunchWhole(const PatchLaunch& launch, const WholeRun& run, CUstream_st* stream);
/// Labels that go where the pixels go, to the nearest: sources and slots of uint8, one channel.
int LaunchLabels(const PatchLaunch& launch, CUstream_st* stream);

/// How many kernels LaunchGather and LaunchWhole queue.
inline int KernelsOf(const PatchLaunch& launch) { return launch.smooths ? 4 : 1; }
inline int KernelsOf(const WholeRun& run) {
  const int more = run.finishes ? 1 : 0;
  switch (run.form) {
    case WholeForm::kNone:
      return 0;
    case WholeForm::kBlur:
      return run.along[0] + run.along[1] + run.along[2];
    case WholeForm::kLine:
      return 2 + more;
    case WholeForm::kCurve:
      return 3 + (run.retains ? 2 : 0) + more;
    default:
      return 1;
  }
}

}  // namespace patchbay::ops

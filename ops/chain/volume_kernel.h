// What the kernels of a chain of volumes take, as plain values. The parameters of patches lie in
// device memory. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/chain/chain_kernel.h"
#include "ops/gamma/power_curve.h"
#include "ops/gaussian_noise/patch_noise.h"
#include "ops/geometry/coarse_tap.h"
#include "ops/geometry/voxel_map.h"
#include "ops/intensity/patch_stats.h"
#include "ops/intensity/tone.h"

namespace patchbay::ops {

/// An Extent as kernels take it: they are compiled as C++17, which Extent is too new for.
struct DeviceExtent {
  std::int64_t z = 1, y = 0, x = 0;

  PB_HOST_DEVICE std::int64_t Rows() const { return z * y; }
  PB_HOST_DEVICE std::int64_t Voxels() const { return Rows() * x; }
};

/// A Gaussian along one axis; radius 0: none.
struct DeviceBlur {
  int radius = 0;
  const float* d_weight = nullptr;  ///< 2 radius + 1
};

struct DeviceGamma {
  float exponent = 1;
  bool retains = false, inverts = false;

  /// Whether a line comes after its power.
  PB_HOST_DEVICE bool HasLine() const { return retains || inverts; }
};

/// Where the voxels of a patch come from.
struct DeviceGeometry {
  const std::byte* d_source = nullptr;  ///< (z, y, x) of `source`, contiguous
  DeviceExtent source;
  bool whole_voxels = true;
  bool mirrored[3] = {};
  VoxelMap map;
  int points = 0;  ///< of the field along each axis; 0: no voxel moves
  float inverse_spacing[3] = {};
  const float* d_moves = nullptr;  ///< (3, points, points, points): along z, y and x
  DeviceBlur smooth[3];
  /// Two of the source in float where any axis is smoothed, or null; the first ends up as the block
  /// that is sampled.
  float* d_smooth[2] = {};
};

/// What a patch keeps on the GPU between kernels.
struct VolumeState {
  PatchStats before;  ///< of the gamma that is being made
  PowerCurve curve;
};

/// A patch: where it comes from and what it draws.
struct DeviceVolume {
  DeviceGeometry geometry;
  std::byte* d_out = nullptr;
  Tone tone;
  PatchNoise noise;
  float brightness = 1, contrast = 1;
  DeviceBlur blur;
  const CoarseTap* d_taps = nullptr;  ///< of z, then y, then x; null: no low_resolution
  int gammas = 0;
  const DeviceGamma* d_gammas = nullptr;
  /// Two patches of floats, where an op needs neighbours or the whole patch; otherwise null, and
  /// values go straight to d_out.
  float* d_planes[2] = {};
  PatchSums* d_row_sums = nullptr;  ///< one a row
  LineWithin* d_lines = nullptr;    ///< contrast's, then one for each gamma
  VolumeState* d_state = nullptr;

  /// The values after the blur, and after low_resolution.
  PB_HOST_DEVICE float* d_blurred() const { return d_planes[blur.radius != 0 ? 1 : 0]; }
  PB_HOST_DEVICE float* d_values() const {
    return d_planes[(blur.radius != 0) != (d_taps != nullptr) ? 1 : 0];
  }
};

/// A launch of up to kLaunchSlices patches.
struct VolumeLaunch {
  DeviceExtent patch;
  SourceType source = SourceType::kInt16;
  CastTo to = CastTo::kFloat32;
  int casts = 0;
  CastTo cast[kMaxKernelSteps] = {};
  const DeviceVolume* d_volumes = nullptr;
  int count = 0;
  /// Of any of its patches.
  bool smooths = false, in_planes = false, blurs = false, contrasts = false, coarse = false;
  int gammas = 0;           ///< the most
  bool retains = false;     ///< any gamma
  std::int64_t voxels = 0;  ///< of the largest source that is smoothed
};

/// Each queues its kernels and returns CUDA's error number; none synchronises. The values of
/// patches as far as brightness, and blur: to d_blurred, or to the slot.
int LaunchVolumeVoxels(const VolumeLaunch& launch, CUstream_st* stream);
/// Contrast, low_resolution, gammas and the way to the slot, for patches that have planes.
int LaunchVolumeCurves(const VolumeLaunch& launch, CUstream_st* stream);
/// Labels that go where the voxels go, to the nearest: sources and slots of uint8.
int LaunchVolumeLabels(const VolumeLaunch& launch, CUstream_st* stream);

/// How many kernels the first two queue.
int KernelsOf(const VolumeLaunch& launch);

}  // namespace patchbay::ops

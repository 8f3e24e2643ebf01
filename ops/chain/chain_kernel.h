// What the chain's kernels take, as plain values. A kernel makes slices: 2-D patches, or planes of
// a deeper one. Their parameters lie in device memory. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cast/cast_math.h"
#include "ops/chain/patch_geometry.h"
#include "ops/color_jitter/color_steps.h"
#include "ops/colour/od_map.h"
#include "ops/gaussian_blur/gaussian_blur_math.h"
#include "ops/gaussian_noise/patch_noise.h"
#include "ops/icc_to_srgb/icc_to_srgb_math.h"
#include "ops/normalize/normalize_math.h"
#include "ops/stain_normalize/lab_map.h"
#include "runtime/core/channels.h"

struct CUstream_st;

namespace patchbay::ops {

/// Slices in one launch.
inline constexpr int kLaunchSlices = 64;
/// Ops of a chain (plan::kMaxOps).
inline constexpr int kMaxKernelSteps = 64;

/// The types of source values that kernels read.
enum class SourceType : std::int32_t { kUint8, kUint16, kInt16, kFloat32 };

/// What all slices of a launch share.
struct SliceShape {
  std::int64_t height = 0, width = 0;                ///< of a finished slice
  std::int64_t source_height = 0, source_width = 0;  ///< of the slice of the source box
  std::int64_t channel_elements = 0;                 ///< planar: from a channel to the next
  int channels = 3;
  bool planar = true;  ///< a channel's elements lie one after another
  CastTo to = CastTo::kFloat32;
  SourceType source = SourceType::kUint8;
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

/// One op of a chain that works value by value, in double.
struct ValueStep {
  bool casts = false;
  CastTo to = CastTo::kFloat32;
  NormalizeChannel channel[kMaxChannels];
};

/// A launch value by value.
struct ValueLaunch {
  SliceShape shape;
  const MovedSlice* d_slices = nullptr;
  int count = 0;
  const ValueStep* d_steps = nullptr;
  int steps = 0;
};

/// A slice made in float: what its patch draws.
struct FloatSlice {
  const std::byte* d_source = nullptr;
  std::byte* d_out = nullptr;
  /// Where an op needs neighbours or the whole slice: two images of height x width floats a
  /// channel, one after the other. Null otherwise.
  float* d_planes = nullptr;
  unsigned long long grey_sum = 0;  ///< of the whole slice, in steps of 2^-16: kernels add it up
  std::int64_t rows_before = 0;     ///< finished rows of the slices before this one
  PatchGeometry geometry;
  const IccNode* d_icc = nullptr;  ///< nodes of the image's lookup; null: colours stay
  bool maps_lab = false, maps_od = false, jitters = false;
  LabMap lab;
  OdMap od;
  ColorJitter jitter;
  int before_mean = kColorSteps;  ///< steps of the jitter before the first that needs the mean
  int blur_radius = 0;
  float blur_weight[2 * kMaxBlurRadius + 1] = {};
  PatchNoise noise;

  PB_HOST_DEVICE bool needs_mean() const { return before_mean < kColorSteps; }
};

/// A launch in float.
struct FloatLaunch {
  SliceShape shape;
  FloatSlice* d_slices = nullptr;
  int count = 0;
  bool any_mean = false, any_blur = false;  ///< of its slices
  float white = 255;
  int icc_grid = 2;  ///< nodes along each axis of lookups
  bool scales = false;
  float slope[kMaxChannels] = {}, offset[kMaxChannels] = {};
  int casts = 0;
  CastTo cast[kMaxKernelSteps] = {};
};

/// Labels that go where the pixels go, to the nearest: bytes of one channel.
struct LabelLaunch {
  SliceShape shape;
  const FloatSlice* d_slices = nullptr;  ///< source, output and geometry
  int count = 0;
};

/// Each queues its kernels and returns CUDA's error number. None synchronises.
int LaunchTables(const TableLaunch& launch, CUstream_st* stream);
int LaunchValues(const ValueLaunch& launch, CUstream_st* stream);
int LaunchFloat(const FloatLaunch& launch, CUstream_st* stream);
int LaunchLabels(const LabelLaunch& launch, CUstream_st* stream);

}  // namespace patchbay::ops

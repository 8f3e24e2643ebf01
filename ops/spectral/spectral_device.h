// spectral on a GPU: the twin of SpectralFrames::Create. Its sums are its own class of numerics:
// the same bits on every GPU, in every order, and however frames are cut into blocks, but not the
// CPU's (they agree to 1e-3 dB). notes/0004-spectral-on-a-gpu.md describes it.
#pragma once

#include <memory>

#include "ops/spectral/spectral_frames.h"

namespace patchbay::ops {

/// The only frame a GPU counts.
inline constexpr int kDeviceSpectralFrame = 256;

/// Counts frames on GPU `device` (of memory::ListGpus). Add and AddRgb copy the pixels into pinned
/// memory, queue the rest and return: while the GPU counts one block, the next is copied. Nothing
/// is in the sums before Finish. At most kMaxDeviceSums sums between two calls of Finish. For one
/// thread. AddRgb leaves grey to the GPU and copies three times the bytes.
///
/// Unimplemented for another frame than kDeviceSpectralFrame and in a build without CUDA;
/// ResourceExhausted when the GPU's memory is short (it takes under 400 MiB).
StatusOr<std::unique_ptr<SpectralFrames>> CreateDeviceSpectralFrames(
    const plan::SpectralOptions& options, int device);

inline constexpr std::size_t kMaxDeviceSums = 8;

}  // namespace patchbay::ops

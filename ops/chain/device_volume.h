// The launches that make the patches of a chain of volumes. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/chain/chain.h"
#include "ops/chain/device_arena.h"
#include "ops/chain/drawn_volume.h"
#include "runtime/core/status.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

/// The scratch of `patches` patches, at most kPlaneBytesMax unless one alone needs more: a part of
/// what an arena keeps. Sources that may be smoothed are taken to have eight times the voxels of
/// their patch; the arena grows at the launch of larger ones.
std::uint64_t VolumePlaneBytes(const Chain& chain, std::size_t patches);

/// Queues everything that makes `patches`. One launch takes as many as its scratch has room for, at
/// most kLaunchSlices.
Status LaunchVolumePatches(const Chain& chain, std::span<const VolumeItem> patches,
                           DeviceArena& arena, memory::GpuStream stream);
/// The geometry alone, on labels of uint8.
Status LaunchVolumeMasks(const Chain& chain, std::span<const VolumeItem> labels, DeviceArena& arena,
                         memory::GpuStream stream);

/// The kernels' name of a type of sources.
SourceType SourceTypeOf(DType dtype);

}  // namespace patchbay::ops

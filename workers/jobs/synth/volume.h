// A realistic CT volume made from nothing, as a store.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"
#include "workers/jobs/synth/slide.h"

namespace patchbay::workers {

/// Longest side of a synthetic volume, and its most voxels: an eighth of them is held in memory.
inline constexpr std::int64_t kMaxVolumeSide = 4096;
inline constexpr std::int64_t kMaxVolumeVoxels = std::int64_t{1} << 31;

struct SynthVolumeOptions {
  Extent size{128, 512, 512};  ///< voxels of level 0
  std::uint64_t seed = 1;      ///< same seed, same bytes, on every machine
};

/// {"size": [z, y, x], "seed": s}; absent keys keep their defaults. InvalidArgument for unknown
/// keys and for sizes out of range.
StatusOr<SynthVolumeOptions> SynthVolumeOptionsFromJson(const Json& json);

/// Writes an abdominal CT in Hounsfield units as an OME-Zarr of int16 (z, y, x): chunks of 64 and
/// zarr shards of 256 voxels a side, spacing 2.5 x 0.78125 x 0.78125 mm, and levels of half the
/// size until one chunk holds the whole. The store appears under its name only when complete and
/// durable; on failure or cancel nothing is left. AlreadyExists when something of that name is
/// there.
Status SynthVolume(const Folders& allowed, const std::string& path,
                   const SynthVolumeOptions& options, const SynthProgress& progress = nullptr);

}  // namespace patchbay::workers

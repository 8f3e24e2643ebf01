// Stores as files of single planes, Zarr v2, for programs that read no zarr shards: their chunks
// and how many they are.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

inline constexpr std::int64_t kPlanarSide = 1024;

/// A level's chunk: one plane, no larger than the level.
Extent PlanarChunkOf(const Extent& level);

/// Files that a store and its label sets become at most; background takes none.
StatusOr<std::uint64_t> PlanarFilesOf(const Folders& allowed, const std::string& store);

}  // namespace patchbay::zarr

// A patch's place in the arrays of its shard, and what the small ones hold.
#pragma once

#include <cstddef>
#include <span>

#include "workers/stream/patch_reader.h"

namespace patchbay::workers {

/// The first array that the chain writes; those of contexts follow it.
inline constexpr std::size_t kImageArray = 0;

/// Where the patch goes in its shard's host window.
std::span<std::byte> HostPlaceOf(const FetchedPatch& patch, std::size_t array);
/// The same on the device, or null where the array goes to host memory.
std::byte* DevicePlaceOf(const FetchedPatch& patch, std::size_t array);

/// Writes the arrays that say where the patch came from, which lie in host memory: ordinal,
/// image_index and level are -1 and box is 0 for padding. Of a wrapped tail, the ordinal is that of
/// the patch used again. last_of_image is 1 for an image's last patch of the epoch, 0 otherwise.
void WriteMetaArrays(const FetchedPatch& patch);

}  // namespace patchbay::workers

// A volume in memory, or made row by row, as a store: the finest level from its voxels, the others
// by halving. Each channel of several is made by itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// Writes `count` voxels of level 0 from `at` on, along x.
using VolumeRow = std::function<void(const Point& at, std::int64_t count, std::byte* row)>;

/// The part that is done, 0 to 1; false ends the writing with Cancelled.
using VolumeDone = std::function<bool(double)>;

struct WrittenVolume {
  zarr::StoreRoots roots;
  std::uint64_t stored_bytes = 0;  ///< bytes of the zarr shards
};

/// The levels of a volume of this size: halved until one chunk holds all.
std::vector<Extent> VolumeLevels(const Extent& finest, const zarr::ImageStoreSettings& settings);

/// Writes shards and metadata below `store`. Each level is the one before halved, as in
/// VolumeLevels: by mean, for a label image (spec.image_label) by mode. Durable once the store is
/// published. An eighth of the voxels is held in memory.
StatusOr<WrittenVolume> WriteVolumeStore(const Folders& allowed, const std::string& store,
                                         const zarr::ImageStoreSpec& spec, const VolumeRow& row,
                                         const VolumeDone& done);
/// The same of a volume of several channels, by the rows of each.
StatusOr<WrittenVolume> WriteVolumeStore(const Folders& allowed, const std::string& store,
                                         const zarr::ImageStoreSpec& spec,
                                         const std::vector<VolumeRow>& channels,
                                         const VolumeDone& done);

}  // namespace patchbay::workers

// The zarr shards of a label image: one channel of classes, with a pyramid of its own in which a
// pixel is the commonest value of those below it.
//
// Most of a label image is one value, so a chunk of one value is passed as that value. Memory holds
// some rows of chunks, never a level.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// The value of pixels that no annotation covers; trainers ignore it.
inline constexpr std::uint8_t kIgnoreLabel = 255;

/// Settings of every label image: uint8, one channel, background kIgnoreLabel, chunks of 512 and
/// zarr shards of 4096 pixels a side, independent of the image's settings.
ImageStoreSettings LabelSettings();

/// Settings of the label image of a volume: chunks of 64 and zarr shards of 256 voxels a side.
ImageStoreSettings VolumeLabelSettings();

/// Fills `out` (rows at LabelSettings().chunk.x bytes, clipped to the level) with a chunk's pixels,
/// or returns the value that all of them have, and then `out` may hold anything. Called once per
/// chunk of level 0, in row-major order.
using LabelChunk =
    std::function<StatusOr<std::optional<std::uint8_t>>(const Point& chunk, std::uint8_t* out)>;

/// Called after each row of chunks of level 0 with its chunks; its error ends the work.
using AfterLabelRow = std::function<Status(std::int64_t row, const std::vector<LabelCell>& chunks)>;

/// The result of writing a label image whose metadata is still to come.
struct LabelShards {
  std::vector<ShardRecord> records;         ///< records of every shard of every level
  std::array<std::uint64_t, 256> pixels{};  ///< pixels of level 0, by value
  std::uint64_t stored_bytes = 0;
};

/// Writes the shards of all `levels` (finest first, each no larger than the one before) below
/// `folder`; durable once PublishStore has synced it. A pixel of a coarser level is the commonest
/// value among the pixels that it covers in the level before; of equally common ones the smallest.
/// Deterministic. Errors of `finest` end the work. `finest` and `after_row` are called on the
/// caller's thread; a second thread encodes the row before, with the help of the caller's as soon
/// as that has nothing else to do. `after_shard` is called after every file, on either thread.
StatusOr<LabelShards> WriteLabelShards(const Folders& allowed, const std::string& folder,
                                       const std::vector<Extent>& levels, const LabelChunk& finest,
                                       const AfterLabelRow& after_row,
                                       const std::function<void()>& after_shard = {});

/// The counts that WriteLabelShards would find at level 0, without writing anything.
StatusOr<std::array<std::uint64_t, 256>> CountLabels(const Extent& level, const LabelChunk& finest,
                                                     const std::function<Status()>& after_row);

}  // namespace patchbay::zarr

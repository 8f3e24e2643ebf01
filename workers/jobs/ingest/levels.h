// The levels that a store gets: the source's own, then averages of 2 x 2 pixels of the coarsest,
// until one chunk holds the whole slide.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct OutputLevel {
  bool from_source = true;  ///< decoded from the source; otherwise averaged 2x2 from `parent`
  int source_level = 0;     ///< when from_source
  int parent = -1;          ///< index in the same vector, when !from_source
  bool stored =
      true;  ///< false: finer than --mpp asks for, only read on the way to the first stored level
  Extent size;
  double downsample_y = 1.0, downsample_x = 1.0;  ///< against the source's level 0
};

inline constexpr int kMaxOutputLevels = 40;

/// Whether the settings state the resolution of a source that does not.
bool AssumesMpp(const ImageLayout& source, const IngestSettings& settings);

/// The spacing of the source's finest level: as the source states it, else as the settings assume
/// it, else absent.
Spacing SpacingOf(const ImageLayout& source, const IngestSettings& settings);

/// Finest first; the source's own where its tiles are kept, and of a dataset of tiles, which an
/// average would mix. A built level has ceil(parent / 2)
/// pixels on each axis. With settings.mpp the store begins with the level within 5 % of it, a
/// source level if there is one, else one built between source levels; InvalidArgument when there
/// is none, or when neither the source nor the settings state its mpp. Unimplemented for a volume.
StatusOr<std::vector<OutputLevel>> PlanLevels(const ImageLayout& source,
                                              const IngestSettings& settings);

/// Place of levels[index] among the stored ones: its array's name in the store.
int StoredIndex(const std::vector<OutputLevel>& levels, int index);

/// The finer stored level from whose pixels, level after level, levels[index] is averaged, at most
/// `coarser_max` levels below it; `index` itself for a level that is decoded from the source, or
/// averaged from stored pixels. Levels with one finest are made together (zarr::CoarserLevels).
int FinestOfColumn(const std::vector<OutputLevel>& levels, int index, int coarser_max);

}  // namespace patchbay::workers

// Which levels a store gets: the source's own are kept, the missing factors of two are built by
// averaging, until one chunk holds the whole slide.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "workers/jobs/ingest/settings.h"
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

/// Finest first. A built level has ceil(parent / 2) pixels on each axis. Unimplemented for a
/// volume. InvalidArgument when settings.mpp is given and the source has no mpp or no level of the
/// pyramid is within 5 % of it.
StatusOr<std::vector<OutputLevel>> PlanLevels(const ImageLayout& source,
                                              const IngestSettings& settings);

/// Place of levels[index] among the stored ones: its array's name in the store.
int StoredIndex(const std::vector<OutputLevel>& levels, int index);

/// The finer stored level from whose pixels, level after level, levels[index] is averaged, at most
/// `coarser_max` levels below it; `index` itself for a level that is decoded from the source, or
/// averaged from stored pixels. Levels with one finest are made together (zarr::CoarserLevels).
int FinestOfColumn(const std::vector<OutputLevel>& levels, int index, int coarser_max);

}  // namespace patchbay::workers

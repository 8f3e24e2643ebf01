// A label set as a TIFF mask, in pixels of the slide's finest level.
#include "workers/jobs/labels/export_mask.h"

#include <algorithm>
#include <vector>

#include "workers/jobs/task/progress.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {

StatusOr<std::uint64_t> ExportMask(TaskContext& context, const OpenedLabels& labels,
                                   const std::string& path) {
  const Extent &size = labels.image.levels[0], &source = labels.image.source;
  PB_ASSIGN_OR_RETURN(LabelRowReader reader,
                      LabelRowReader::Open(context.allowed, labels, ProgressOf(context)));
  PB_ASSIGN_OR_RETURN(MaskTiff tiff, MaskTiff::Create(context.allowed, path, source));
  std::vector<std::uint8_t> band;
  for (std::int64_t y = 0; y < source.y; y += MaskTiff::kTile) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    const std::int64_t height = std::min(MaskTiff::kTile, source.y - y);
    // The store may leave out the slide's finest levels: its pixel then stands for several.
    const std::int64_t first = y * size.y / source.y;
    const std::int64_t last = (y + height - 1) * size.y / source.y;
    PB_ASSIGN_OR_RETURN(const std::uint8_t* rows, reader.Read(first, last - first + 1));
    band.resize(static_cast<std::size_t>(height * source.x));
    for (std::int64_t i = 0; i < height; ++i) {
      const std::uint8_t* row = rows + ((y + i) * size.y / source.y - first) * size.x;
      std::uint8_t* out = band.data() + i * source.x;
      for (std::int64_t x = 0; x < source.x; ++x) out[x] = row[x * size.x / source.x];
    }
    PB_RETURN_IF_ERROR(tiff.AddBand(band));
    context.AddProgress();
  }
  return tiff.Commit();
}

}  // namespace patchbay::workers

#include <algorithm>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "workers/jobs/labels/export_formats.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {

StatusOr<Json> ExportMask(TaskContext& context, const OpenedLabels& labels,
                          const LabelsExportOptions& options, const std::string& path) {
  const std::vector<Extent>& levels = labels.image.levels;
  const auto level = static_cast<std::size_t>(options.level.value_or(0));
  if (level >= levels.size()) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "export labels", labels.image.store,
                      StrCat("--level ", level, ": its levels are 0 to ", levels.size() - 1));
  }
  const Extent &size = levels[level], &source = options.level ? size : labels.image.source;
  PB_ASSIGN_OR_RETURN(
      LabelRowReader reader,
      LabelRowReader::Open(context.allowed, labels, static_cast<int>(level), ProgressOf(context)));
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
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes, tiff.Commit());
  return Json{{"content", StrCat("mask of ", source.x, " x ", source.y, " pixels")},
              {"size", {source.y, source.x}},
              {"bytes", bytes}};
}

}  // namespace patchbay::workers

// A label set as a file for other programs, format by format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/labels/opened_labels.h"
#include "workers/jobs/labels/volume_grid.h"

namespace patchbay::workers {

/// The source's axes, size and affine, by the steps that the store records; the grid that `ingest
/// --geometry` made where the source had none (unequal steps between slices). DataLoss for a record
/// that cannot be.
StatusOr<VoxelGrid> SourceGridOf(const LabelledImage& image);

struct SourceLabels {
  VoxelGrid grid;
  std::vector<std::uint8_t> values;  ///< x fastest
  bool is_resampled = false;         ///< the store has another spacing than its source
};
StatusOr<SourceLabels> ReadOnSourceGrid(TaskContext& context, const OpenedLabels& labels);

/// Result: {"content", "size", "grid", "bytes"}.
StatusOr<Json> ExportNifti(TaskContext& context, const OpenedLabels& labels,
                           const LabelsExportOptions& options, const std::string& path);
StatusOr<Json> ExportNrrd(TaskContext& context, const OpenedLabels& labels,
                          const LabelsExportOptions& options, const std::string& path);

/// Writes the values of the set (255 = ignored) in pixels of the slide's finest level, or in those
/// of the store's level `options.level`, some rows at a time. InvalidArgument for a level that the
/// store does not have. Result: {"content", "size", "bytes"}.
StatusOr<Json> ExportMask(TaskContext& context, const OpenedLabels& labels,
                          const LabelsExportOptions& options, const std::string& path);

/// A feature for each piece of a class, but for the class of pixels that nobody drew
/// (UncoveredClass): with the name and the colour of the class, an id that the same outline of the
/// same image has in every export, its area, and its holes. InvalidArgument for lengths where the
/// slide has no um/px. Result: {"content", "outlines", "offset", "bytes"}.
StatusOr<Json> ExportOutlines(TaskContext& context, const OpenedLabels& labels,
                              const LabelsExportOptions& options, const std::string& path);

/// The manifest's "sources" names the series, or a folder with it among others: the one whose
/// content the store records is taken. InvalidArgument where there is none, for a store of another
/// source than DICOM and for one whose slices were resampled. Result: {"content", "segments",
/// "bytes"}; nothing of the series' identity.
StatusOr<Json> ExportSegmentation(TaskContext& context, const OpenedLabels& labels,
                                  const LabelsExportOptions& options, const std::string& path);

}  // namespace patchbay::workers

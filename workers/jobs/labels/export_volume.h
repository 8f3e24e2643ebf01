// A label set of a volume on the grid of the source that the store was made from.
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

}  // namespace patchbay::workers

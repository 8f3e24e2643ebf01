// A label set as a TIFF mask.
#pragma once

#include <string>

#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/labels/opened_labels.h"

namespace patchbay::workers {

/// Writes the values of the set (255 = ignored) in pixels of the slide's finest level, or in those
/// of the store's level `options.level`, some rows at a time. InvalidArgument for a level that the
/// store does not have. Result: {"content", "size", "bytes"}.
StatusOr<Json> ExportMask(TaskContext& context, const OpenedLabels& labels,
                          const LabelsExportOptions& options, const std::string& path);

}  // namespace patchbay::workers

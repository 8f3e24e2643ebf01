// A label set as outlines for annotation programs: GeoJSON as QuPath writes it.
#pragma once

#include <string>

#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/labels/opened_labels.h"

namespace patchbay::workers {

/// A feature for each piece of a class, but for the class of pixels that nobody drew
/// (UncoveredClass): with the name and the colour of the class, an id that the same outline of the
/// same image has in every export, its area, and its holes. InvalidArgument for lengths where the
/// slide has no um/px. Result: {"content", "outlines", "offset", "bytes"}.
StatusOr<Json> ExportOutlines(TaskContext& context, const OpenedLabels& labels,
                              const LabelsExportOptions& options, const std::string& path);

}  // namespace patchbay::workers

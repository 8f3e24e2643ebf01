// A label set of a volume as a DICOM SEG of the series that the store was made from.
#pragma once

#include <string>

#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/labels/opened_labels.h"

namespace patchbay::workers {

/// The manifest's "sources" names the series, or a folder with it among others: the one whose
/// content the store records is taken. InvalidArgument where there is none, for a store of another
/// source than DICOM and for one whose slices were resampled. Result: {"content", "segments",
/// "bytes"}; nothing of the series' identity.
StatusOr<Json> ExportSegmentation(TaskContext& context, const OpenedLabels& labels,
                                  const LabelsExportOptions& options, const std::string& path);

}  // namespace patchbay::workers

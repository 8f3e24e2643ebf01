// One row for every CT series and every volume in a file below what is named, from headers.
#pragma once

#include <string>

#include "runtime/base/json.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

struct ScanVolumesOptions {
  std::string pseudonym_key;  ///< of patients, studies and series; "": rows have none
  bool hash = false;          ///< all files are read for content_hash
};

/// Rows of the volumes of a file or folder; a DICOMDIR stands for its folder. Each has "path" (of a
/// series of several files their folder and its pseudonym, see SplitSeriesPath), "verdict"
/// (Judge's; of other formats "unchecked", as only reading them whole tells), "reason", "kind",
/// "source_bytes", "estimated_bytes", "content_hash" or "", and a series also "is_series",
/// "patient", "study", "series", "slices", "height", "width", "thickness_mm", "step_mm",
/// "pixel_mm", "kernel", "contrast" ("yes", "no") and "orientation" ("axial", "coronal",
/// "sagittal", "oblique"), as far as its header says. Files that look like volumes and are none
/// have "path" and a verdict alone.
StatusOr<Json> ScanVolumes(TaskContext& context, const std::string& path,
                           const ScanVolumesOptions& options);

}  // namespace patchbay::workers

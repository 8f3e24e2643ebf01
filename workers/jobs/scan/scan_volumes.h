// One row for every CT series and every volume file below the named paths, from headers.
#pragma once

#include <string>
#include <vector>

#include "runtime/format/json/json.h"
#include "runtime/model/jobs/local_job_options.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

struct ScanVolumesOptions : ScanOptions {
  std::string pseudonym_key;  ///< key for patients, studies and series; "": rows have no pseudonyms
};

struct ScannedVolumes {
  Json rows = Json::array();
  std::vector<std::string> files;  ///< the files of the rows
};

/// Makes the row of a mask next to images: "verdict" is "mask", and "use" is "0".
void MarkMask(const std::string& reason, Json& row);

/// Rows of the volumes of a file or folder; a DICOMDIR stands for its folder. Each has "path" (of a
/// series of several files their folder and its pseudonym, see SplitSeriesPath), "verdict"
/// (Judge's, "unsure" for a uniform series without a tube voltage; of other formats "uniform", or
/// "not-a-volume" for what ReadVolumeHeader refuses), "reason", "kind", "source_bytes",
/// "estimated_bytes", "content_hash" or "", "is_series", "slices", "height", "width", "step_mm",
/// "pixel_mm" and "orientation" ("axial", "coronal", "sagittal", "oblique"), and a DICOM series
/// also "patient", "study", "series", "thickness_mm", "kernel" and "contrast" ("yes", "no"), as far
/// as the header says. Files that look like volumes and are none, or are cut, and DICOM slides have
/// "path" and a verdict alone. Masks in
/// a folder are marked (MarkMask).
StatusOr<ScannedVolumes> ScanVolumes(TaskContext& context, const std::string& path,
                                     const ScanVolumesOptions& options);

}  // namespace patchbay::workers

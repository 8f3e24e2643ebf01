// One row for every CT series and every volume file below the named paths, from headers.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/jobs/local_job_options.h"
#include "runtime/model/results/scan_rows.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

struct ScanVolumesOptions : ScanOptions {
  std::string pseudonym_key;  ///< key for patients, studies and series; "": rows have no pseudonyms
};

struct ScannedVolumes {
  std::vector<results::ScanRow> rows;
  std::vector<std::string> files;  ///< the files of the rows
};

/// Makes the row that of a mask next to images.
void MarkMask(const std::string& reason, results::ScanRow& row);

/// Rows of the volumes of a file or folder; a DICOMDIR stands for its folder. The verdict is that
/// of Judge, "unsure" for a uniform series without a tube voltage; of other formats "uniform", or
/// "not-a-volume" for files that ReadVolumeHeader refuses. Files that look like volumes and are
/// none, or are cut, and DICOM slides have a path and a verdict alone. Masks in a folder are
/// marked.
StatusOr<ScannedVolumes> ScanVolumes(TaskContext& context, const std::string& path,
                                     const ScanVolumesOptions& options);

}  // namespace patchbay::workers

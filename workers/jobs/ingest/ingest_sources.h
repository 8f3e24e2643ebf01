// The sources of an ingest: the slides and volumes behind the paths that a user names.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/model/jobs/job_manifest.h"
#include "workers/jobs/ingest/ingest_volume.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// The sources of a job in the order named, and the volumes among them.
struct FoundSources {
  std::vector<std::string> names;
  std::map<std::size_t, PlannedVolume> volumes;  ///< by place in `names`
  std::map<std::string, std::string> masks;      ///< left out of folders: why, by path
  FilesByKind skipped_files;                     ///< files in folders that are none of them
};

/// `repairs`: rules for each of `asked.sources`. NotFound for a path without images.
StatusOr<FoundSources> FindSources(TaskContext& context, const JobManifest& asked,
                                   const std::vector<std::string>& repairs);

/// The rules of each source: those of its row in the payload, else the settings'.
StatusOr<std::vector<std::string>> RepairsOfSources(const JobManifest& asked, const Json& payload,
                                                    const std::string& otherwise);

}  // namespace patchbay::workers

// The sources of an ingest: the slides and volumes behind the paths that a user names.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/source/tile_list.h"
#include "workers/jobs/ingest/ingest_volume.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// The sources of a job in the order named, and the volumes among them.
struct FoundSources {
  std::vector<std::string> names;
  std::map<std::size_t, PlannedImage> volumes;  ///< by place in `names`
  std::map<std::size_t, TileList> tiles;        ///< datasets of tiles, likewise
  std::map<std::string, std::string> masks;     ///< left out of folders: why, by path
  FilesByKind skipped_files;                    ///< files in folders that are none of them
};

/// A source among those that become one image.
struct ChannelOfImage {
  std::size_t image = 0, place = 0;  ///< number of the image, number of its channel
  std::string name;
};
/// By the number of the source.
using ChannelRows = std::map<std::size_t, ChannelOfImage>;

/// `repairs`: rules for each of `asked.sources`. NotFound for a path without images.
StatusOr<FoundSources> FindSources(TaskContext& context, const JobManifest& asked,
                                   const std::vector<std::string>& repairs,
                                   const ChannelRows& channels);

/// The sources that are channels, in the payload. InvalidArgument unless each image there has two
/// or more of different names, and each source is one of them at most.
StatusOr<ChannelRows> ChannelsOfSources(const JobManifest& asked, const Json& payload);

/// The rules of each source: those of its row in the payload, else the settings'.
StatusOr<std::vector<std::string>> RepairsOfSources(const JobManifest& asked, const Json& payload,
                                                    const std::string& otherwise);

}  // namespace patchbay::workers

// The sources of an ingest: the slides and volumes behind the paths that a user names.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/jobs/ingest_settings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/model/source/slide_choice.h"
#include "runtime/model/source/tile_list.h"
#include "workers/jobs/ingest/ingest_volume.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// The sources of a job in the order named, and the volumes among them.
struct FoundSources {
  std::vector<std::string> names;
  std::map<std::size_t, PlannedImage> volumes;  ///< by place in `names`
  std::map<std::size_t, TileList> tiles;        ///< datasets of tiles, likewise
  std::map<std::size_t, SlideChoice> choices;   ///< slides for which one is made, likewise
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

/// The statements of a table's rows about each of `asked.sources`.
struct SourceRows {
  std::vector<std::string> repairs;
  ChannelRows channels;
  std::vector<SlideChoice> choices;
};

/// The keys beside the settings in a payload that ReadSourceRows takes.
inline constexpr std::initializer_list<std::string_view> kKeysOfRows = {
    kRepairsOfRows, kChannelsOfRows, kChoicesOfRows};

/// All of them in the payload; `repair`: of sources whose row says none.
StatusOr<SourceRows> ReadSourceRows(const JobManifest& asked, const Json& payload,
                                    const std::string& repair);

/// NotFound for a path without images.
StatusOr<FoundSources> FindSources(TaskContext& context, const JobManifest& asked,
                                   const SourceRows& rows);

}  // namespace patchbay::workers

// A dataset of tiles on its way into a store: the list that ingest.plan made, which all tasks go
// by, and the tables with which streams deliver the tiles and their classes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/model/source/tile_list.h"
#include "workers/jobs/ingest/ingest_sources.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Beside the stores, owner-only: the table of images that a stream takes as its dataset, and the
/// table of places, a row a tile.
inline constexpr char kTilesDataset[] = "cohort.csv", kTilesPositions[] = "positions.csv";

/// AlreadyExists where the tables' names are taken; InvalidArgument for folders of one name, which
/// both tables name the dataset by.
Status CheckTileTables(const StagedFolders& folders, const FoundSources& sources);

Status SaveTiles(const IngestTask& task, const TileList& tiles);
/// The files of the task's source; none where it is no dataset of tiles.
StatusOr<std::vector<std::string>> SavedTiles(const IngestTask& task);

/// The image behind the task's source: a slide, or the tiles of a dataset. `path` is canonical.
StatusOr<std::unique_ptr<ImageSource>> OpenSourceImage(TaskContext& context, const IngestTask& task,
                                                       const std::string& path);
/// The digest that names the source, of tiles over their names and content.
StatusOr<Digest> SourceDigest(TaskContext& context, const IngestTask& task,
                              const std::string& path);
/// The bytes that it is over.
std::uint64_t SourceBytes(TaskContext& context, const IngestTask& task, const std::string& path);

/// An error about a tile, whose name does not travel: OUT/verdicts.csv gets it, and the error says
/// so. Other errors stay as they are.
Status NamingTile(const IngestTask& task, const Status& why);

/// A store of tiles.
struct StoredTiles {
  std::string slide_id;  ///< the name of the dataset's folder
  std::string store;
  std::vector<std::string> files;
  std::int64_t height = 0;  ///< rows of the store to a tile
};
StatusOr<StoredTiles> StoredTilesOf(const IngestTask& task, const std::string& store,
                                    std::vector<std::string> files);

/// Writes the tables anew: rows of other datasets stay, and so does the number of a class that is
/// in them. New classes get the next numbers, by name.
Status WriteTileTables(const StagedFolders& folders, const std::vector<StoredTiles>& stored);

}  // namespace patchbay::workers

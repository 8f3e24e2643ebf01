// Joining the records of shards that different processes made into the two roots of a store.
#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/base/strings.h"
#include "runtime/zarr/image_store.h"
#include "runtime/zarr/shard_list.h"
#include "runtime/zarr/store_metadata.h"

namespace patchbay::zarr {
namespace {

using PlaceKey = std::tuple<int, std::int64_t, std::int64_t>;

Status Refuse(const ShardPlace& place, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("combine shards: ", ShardFileName(place), ": ", cause));
}

StatusOr<std::map<PlaceKey, const ShardRecord*>> Sort(const ImageStoreSpec& spec,
                                                      const std::vector<ShardRecord>& records) {
  std::map<PlaceKey, const ShardRecord*> out;
  for (const ShardRecord& record : records) {
    const ShardPlace& place = record.place;
    if (place.level < 0 || static_cast<std::size_t>(place.level) >= spec.levels.size()) {
      return Refuse(place, "no such level");
    }
    const LevelSize grid =
        ShardGridOf(spec.settings, spec.levels[static_cast<std::size_t>(place.level)]);
    if (place.row < 0 || place.row >= grid.height || place.column < 0 ||
        place.column >= grid.width) {
      return Refuse(place, "outside the level");
    }
    if (!out.emplace(PlaceKey(place.level, place.row, place.column), &record).second) {
      return Refuse(place, "there twice");
    }
  }
  return out;
}

/// Puts a shard's chunk digests at their places in the level's chunk grid.
Status Scatter(const ImageStoreSettings& settings, const LevelSize& chunk_grid,
               const ShardRecord& record, std::vector<Digest>& chunks) {
  const std::int64_t per_side = settings.shard_px / settings.chunk_px;
  const std::int64_t top = record.place.row * per_side;
  const std::int64_t left = record.place.column * per_side;
  const std::int64_t rows = std::min(per_side, chunk_grid.height - top);
  const std::int64_t columns = std::min(per_side, chunk_grid.width - left);
  if (record.chunk_pixels.size() != static_cast<std::size_t>(rows * columns)) {
    return Refuse(record.place,
                  StrCat(record.chunk_pixels.size(), " chunk digests, not ", rows * columns));
  }
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t at = (top + i / columns) * chunk_grid.width + left + i % columns;
    chunks[static_cast<std::size_t>(at)] = record.chunk_pixels[static_cast<std::size_t>(i)];
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<StoreRoots> CombineRoots(const ImageStoreSpec& spec,
                                  const std::vector<ShardRecord>& records) {
  PB_ASSIGN_OR_RETURN(MetadataDocuments documents, BuildMetadata(spec));
  PB_ASSIGN_OR_RETURN(const auto sorted, Sort(spec, records));
  StoreRoots roots;
  std::vector<Digest> bytes_nodes, pixel_nodes;
  for (std::size_t l = 0; l < spec.levels.size(); ++l) {
    const LevelSize shards = ShardGridOf(spec.settings, spec.levels[l]);
    const LevelSize chunk_grid = ChunkGridOf(spec.settings, spec.levels[l]);
    std::vector<ShardLeaf> leaves;
    LevelFiles files;
    std::vector<Digest> chunks(static_cast<std::size_t>(chunk_grid.height * chunk_grid.width));
    for (std::int64_t i = 0; i < shards.height * shards.width; ++i) {
      const ShardPlace place{static_cast<int>(l), i / shards.width, i % shards.width};
      const auto found = sorted.find(PlaceKey(place.level, place.row, place.column));
      if (found == sorted.end()) return Refuse(place, "missing");
      const ShardRecord& record = *found->second;
      files.shards.emplace_back();
      if (record.size_bytes > 0) {
        leaves.push_back({place.row, place.column, record.digest});
        files.shards.back() = FirstBitsOf(record.digest);
      }
      PB_RETURN_IF_ERROR(Scatter(spec.settings, chunk_grid, record, chunks));
    }
    bytes_nodes.push_back(files.digest = LevelBytesNode(leaves));
    roots.levels.push_back(std::move(files));
    pixel_nodes.push_back(LevelPixelsNode(spec.settings, spec.levels[l], chunks));
  }
  if (!ListsShards(spec.settings, spec.levels)) roots.levels.clear();
  PB_RETURN_IF_ERROR(
      PutShardList(spec.settings, spec.levels, roots.levels, documents["zarr.json"]));
  roots.bytes = BytesRoot(documents, bytes_nodes);
  roots.pixels = PixelsRoot(pixel_nodes);
  return roots;
}

}  // namespace patchbay::zarr

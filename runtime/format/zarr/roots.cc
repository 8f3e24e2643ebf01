// Joining the records of shards that different processes made into the two roots of a store.
#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/format/zarr/store_metadata.h"

namespace patchbay::zarr {
namespace {

/// Level, channel, place.
using PlaceKey = std::tuple<int, int, Point>;

PlaceKey KeyOf(const ShardPlace& place) { return {place.level, place.channel, place.at}; }

Status RefuseShard(const ShardPlace& place, std::string_view cause) {
  return InvalidArgument("combine shards: ", ShardFileName(place), ": ", cause);
}

StatusOr<std::map<PlaceKey, const ShardRecord*>> Sort(const ImageStoreSpec& spec,
                                                      const std::vector<ShardRecord>& records) {
  std::map<PlaceKey, const ShardRecord*> out;
  for (const ShardRecord& record : records) {
    const ShardPlace& place = record.place;
    if (place.level < 0 || static_cast<std::size_t>(place.level) >= spec.levels.size()) {
      return RefuseShard(place, "no such level");
    }
    const Extent grid =
        ShardGridOf(spec.settings, spec.levels[static_cast<std::size_t>(place.level)]);
    if (!place.at.Inside(grid)) return RefuseShard(place, "outside the level");
    if (!out.emplace(KeyOf(place), &record).second) {
      return RefuseShard(place, "there twice");
    }
  }
  return out;
}

}  // namespace

bool PlaceChunkDigests(const ImageStoreSettings& settings, const Extent& level,
                       const ShardPlace& place, std::span<const Digest> of_shard,
                       std::vector<Digest>& of_level) {
  const Extent grid = ChunkGridOf(settings, level), per_shard = settings.ChunksPerShard();
  const Point& shard = place.at;
  const Point first{shard.z * per_shard.z, shard.y * per_shard.y, shard.x * per_shard.x};
  const Extent own{std::min(per_shard.z, grid.z - first.z), std::min(per_shard.y, grid.y - first.y),
                   std::min(per_shard.x, grid.x - first.x)};
  if (of_shard.size() != static_cast<std::size_t>(own.Pixels())) return false;
  for (std::int64_t i = 0; i < own.Pixels(); ++i) {
    const Point cell = CellAt(own, i);
    const Point at{first.z + cell.z, first.y + cell.y, first.x + cell.x};
    of_level[place.ChannelBegin(grid) + static_cast<std::size_t>(IndexOf(grid, at))] =
        of_shard[static_cast<std::size_t>(i)];
  }
  return true;
}

StatusOr<StoreRoots> CombineRoots(const ImageStoreSpec& spec,
                                  const std::vector<ShardRecord>& records) {
  PB_ASSIGN_OR_RETURN(MetadataDocuments documents, BuildMetadata(spec));
  PB_ASSIGN_OR_RETURN(const auto sorted, Sort(spec, records));
  StoreRoots roots;
  std::vector<Digest> bytes_nodes, pixel_nodes;
  for (std::size_t l = 0; l < spec.levels.size(); ++l) {
    std::vector<ShardLeaf> leaves;
    LevelFiles files;
    std::vector<Digest> chunks(ChunksOfLevel(spec.settings, spec.levels[l]));
    for (const ShardPlace& place : PlacesOf(spec.settings, static_cast<int>(l), spec.levels[l])) {
      const auto found = sorted.find(KeyOf(place));
      if (found == sorted.end()) return RefuseShard(place, "missing");
      const ShardRecord& record = *found->second;
      files.shards.emplace_back();
      if (record.size_bytes > 0) {
        leaves.push_back({place, record.digest});
        files.shards.back() = {FirstBitsOf(record.digest), SealOf(record.chunk_pixels)};
      }
      if (!PlaceChunkDigests(spec.settings, spec.levels[l], place, record.chunk_pixels, chunks)) {
        return RefuseShard(place,
                           StrCat(record.chunk_pixels.size(), " chunk digests are not its own"));
      }
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

#include "runtime/format/zarr/image_store.h"

#include "runtime/core/strings.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/os/file.h"

namespace patchbay::zarr {

Extent ShardGridOf(const ImageStoreSettings& settings, const Extent& level) {
  return CellsOf(level, settings.shard);
}

Extent ChunkGridOf(const ImageStoreSettings& settings, const Extent& level) {
  return CellsOf(level, settings.chunk);
}

std::size_t ChunksOfLevel(const ImageStoreSettings& settings, const Extent& level) {
  return static_cast<std::size_t>(settings.Planes() * ChunkGridOf(settings, level).Pixels());
}

std::uint32_t SealOf(const std::vector<Digest>& chunk_pixels) {
  Sha256 hash;
  hash.Update("patchbay shard seal 1\n");
  for (const Digest& chunk : chunk_pixels) hash.Update(std::as_bytes(std::span(chunk.bytes)));
  return FirstBitsOf(hash.Finish());
}

std::string ShardPlace::Coordinates() const {
  return channel < 0 ? at.ToString() : StrCat(channel, "/", at.ToString());
}

std::vector<ShardPlace> PlacesOf(const ImageStoreSettings& settings, int level,
                                 const Extent& size) {
  std::vector<ShardPlace> places;
  const Extent grid = ShardGridOf(settings, size);
  const bool has_planes = settings.axes == StoreAxes::kCzyx;
  for (int plane = 0; plane < settings.Planes(); ++plane) {
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      places.push_back({level, CellAt(grid, i), has_planes ? plane : -1});
    }
  }
  return places;
}

std::string ShardFileName(const ShardPlace& place) {
  return StrCat(place.level, "/c/", place.Coordinates());
}

Status WriteShardFile(const Folders& allowed, const std::string& store, const EncodedShard& shard) {
  if (shard.bytes.empty()) return absl::OkStatus();
  const std::string path = StrCat(store, "/", ShardFileName(shard.record.place));
  PB_RETURN_IF_ERROR(MakeDirectories(allowed, path.substr(0, path.rfind('/'))));
  return WriteFileDurably(allowed, path, shard.bytes);
}

}  // namespace patchbay::zarr

#include "runtime/format/zarr/image_store.h"

#include "runtime/format/zarr/shard_list.h"
#include "runtime/os/file.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kMaxChunkPixelsListed = std::size_t{1} << 20;

}  // namespace

Extent ShardGridOf(const ImageStoreSettings& settings, const Extent& level) {
  return CellsOf(level, settings.shard);
}

Extent ChunkGridOf(const ImageStoreSettings& settings, const Extent& level) {
  return CellsOf(level, settings.chunk);
}

std::uint32_t SealOf(const std::vector<Digest>& chunk_pixels) {
  Sha256 hash;
  hash.Update("patchbay shard seal 1\n");
  for (const Digest& chunk : chunk_pixels) hash.Update(std::as_bytes(std::span(chunk.bytes)));
  return FirstBitsOf(hash.Finish());
}

std::string ShardFileName(const ShardPlace& place) {
  return StrCat(place.level, "/c/", place.at.ToString());
}

Json ToJson(const ShardRecord& record) {
  Json chunks = Json::array();
  for (const Digest& digest : record.chunk_pixels) chunks.push_back(digest.Hex());
  const Point& at = record.place.at;
  return {{"level", record.place.level},
          {"place", {at.z, at.y, at.x}},
          {"size_bytes", record.size_bytes},
          {"digest", record.digest.Hex()},
          {"chunk_pixels", std::move(chunks)}};
}

StatusOr<ShardRecord> ShardRecordFromJson(const Json& value) {
  constexpr std::string_view kWhat = "shard record";
  ShardRecord out;
  PB_ASSIGN_OR_RETURN(const std::int64_t level, JsonInt(value, "level", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* at, JsonMember(value, "place", kWhat));
  if (!at->is_array() || at->size() != 3 || !(*at)[0].is_number_integer() ||
      !(*at)[1].is_number_integer() || !(*at)[2].is_number_integer()) {
    return InvalidArgument("read shard record: place");
  }
  out.place.at = {(*at)[0].get<std::int64_t>(), (*at)[1].get<std::int64_t>(),
                  (*at)[2].get<std::int64_t>()};
  PB_ASSIGN_OR_RETURN(const std::int64_t size, JsonInt(value, "size_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string digest, JsonString(value, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(out.digest, Digest::FromHex(digest));
  PB_ASSIGN_OR_RETURN(const Json* chunks, JsonMember(value, "chunk_pixels", kWhat));
  if (level < 0 || level > 1000 || size < 0 || !chunks->is_array() ||
      chunks->size() > kMaxChunkPixelsListed) {
    return InvalidArgument("read shard record: a value is out of range");
  }
  out.place.level = static_cast<int>(level);
  out.size_bytes = static_cast<std::uint64_t>(size);
  for (const Json& chunk : *chunks) {
    if (!chunk.is_string()) return InvalidArgument("read shard record: chunk_pixels");
    PB_ASSIGN_OR_RETURN(const Digest pixels, Digest::FromHex(chunk.get<std::string>()));
    out.chunk_pixels.push_back(pixels);
  }
  return out;
}

Status WriteShardFile(const Folders& allowed, const std::string& store, const EncodedShard& shard) {
  if (shard.bytes.empty()) return absl::OkStatus();
  const std::string path = StrCat(store, "/", ShardFileName(shard.record.place));
  PB_RETURN_IF_ERROR(MakeDirectories(allowed, path.substr(0, path.rfind('/'))));
  return WriteFileDurably(allowed, path, shard.bytes);
}

}  // namespace patchbay::zarr

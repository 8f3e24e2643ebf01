#include "runtime/zarr/image_store.h"

#include "runtime/base/file.h"

namespace patchbay::zarr {
namespace {

constexpr std::int64_t kMaxChunkPx = 8192;
constexpr std::int64_t kMaxShardPx = 65536;
constexpr int kMaxChannels = 16;
constexpr std::size_t kMaxChunkPixelsListed = std::size_t{1} << 20;

Status Refuse(std::string_view setting, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("check store settings: ", setting, ": ", cause));
}

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::string_view NameOf(StoreCodec codec) {
  switch (codec) {
    case StoreCodec::kBloscZstd:
      return "zstd";
    case StoreCodec::kBloscLz4:
      return "lz4";
    case StoreCodec::kZstd:
      return "plain-zstd";
  }
  return "?";
}

StatusOr<StoreCodec> StoreCodecFromName(std::string_view name) {
  for (const auto codec : {StoreCodec::kBloscZstd, StoreCodec::kBloscLz4, StoreCodec::kZstd}) {
    if (NameOf(codec) == name) return codec;
  }
  return Refuse("codec", StrCat("'", name, "' is none of zstd, lz4, plain-zstd"));
}

Status Validate(const ImageStoreSettings& s) {
  if (s.dtype != DType::kUint8 && s.dtype != DType::kUint16) {
    return Refuse("dtype", StrCat(patchbay::NameOf(s.dtype), " is neither uint8 nor uint16"));
  }
  if (s.channels < 1 || s.channels > kMaxChannels) {
    return Refuse("channels", StrCat(s.channels, " is not 1 to ", kMaxChannels));
  }
  if (s.chunk_px < 16 || s.chunk_px > kMaxChunkPx) {
    return Refuse("chunk", StrCat(s.chunk_px, " is not 16 to ", kMaxChunkPx));
  }
  if (s.shard_px < s.chunk_px || s.shard_px > kMaxShardPx || s.shard_px % s.chunk_px != 0) {
    return Refuse("shard",
                  StrCat(s.shard_px, " is not a multiple of the chunk up to ", kMaxShardPx));
  }
  const int highest =
      s.codec == StoreCodec::kBloscLz4 || s.codec == StoreCodec::kBloscZstd ? 9 : 22;
  if (s.codec_level < 1 || s.codec_level > highest) {
    return Refuse("codec-level", StrCat(s.codec_level, " is not 1 to ", highest));
  }
  if (s.blosc_block_bytes < 4096 || s.blosc_block_bytes > (1u << 24)) {
    return Refuse("blosc_block_bytes", StrCat(s.blosc_block_bytes, " is not 4096 to 16777216"));
  }
  if (s.dtype == DType::kUint8 && s.fill_value > 255) {
    return Refuse("fill_value", StrCat(s.fill_value, " is no uint8"));
  }
  return absl::OkStatus();
}

Json ToJson(const ImageStoreSettings& s) {
  return {{"dtype", patchbay::NameOf(s.dtype)},
          {"channels", s.channels},
          {"chunk_px", s.chunk_px},
          {"shard_px", s.shard_px},
          {"codec", NameOf(s.codec)},
          {"codec_level", s.codec_level},
          {"blosc_block_bytes", s.blosc_block_bytes},
          {"fill_value", s.fill_value}};
}

StatusOr<ImageStoreSettings> ImageStoreSettingsFromJson(const Json& value) {
  constexpr std::string_view kWhat = "store settings";
  ImageStoreSettings s;
  PB_ASSIGN_OR_RETURN(const std::string dtype, JsonString(value, "dtype", kWhat));
  const auto parsed = DTypeFromName(dtype);
  if (!parsed) return Refuse("dtype", dtype);
  s.dtype = *parsed;
  PB_ASSIGN_OR_RETURN(const std::string codec, JsonString(value, "codec", kWhat));
  PB_ASSIGN_OR_RETURN(s.codec, StoreCodecFromName(codec));
  PB_ASSIGN_OR_RETURN(s.chunk_px, JsonInt(value, "chunk_px", kWhat));
  PB_ASSIGN_OR_RETURN(s.shard_px, JsonInt(value, "shard_px", kWhat));
  const auto narrow = [&](const char* key, std::int64_t highest) -> StatusOr<std::int64_t> {
    PB_ASSIGN_OR_RETURN(const std::int64_t v, JsonInt(value, key, kWhat));
    if (v < 0 || v > highest) return Refuse(key, StrCat(v, " is out of range"));
    return v;
  };
  PB_ASSIGN_OR_RETURN(const std::int64_t channels, narrow("channels", kMaxChannels));
  PB_ASSIGN_OR_RETURN(const std::int64_t level, narrow("codec_level", 100));
  PB_ASSIGN_OR_RETURN(const std::int64_t block, narrow("blosc_block_bytes", 1 << 30));
  PB_ASSIGN_OR_RETURN(const std::int64_t fill, narrow("fill_value", 65535));
  s.channels = static_cast<int>(channels);
  s.codec_level = static_cast<int>(level);
  s.blosc_block_bytes = static_cast<std::uint32_t>(block);
  s.fill_value = static_cast<std::uint16_t>(fill);
  PB_RETURN_IF_ERROR(Validate(s));
  return s;
}

LevelSize ShardGridOf(const ImageStoreSettings& settings, const LevelSize& level) {
  return {CeilDiv(level.height, settings.shard_px), CeilDiv(level.width, settings.shard_px)};
}

LevelSize ChunkGridOf(const ImageStoreSettings& settings, const LevelSize& level) {
  return {CeilDiv(level.height, settings.chunk_px), CeilDiv(level.width, settings.chunk_px)};
}

std::string ShardFileName(const ShardPlace& place) {
  return StrCat(place.level, "/c/0/", place.row, "/", place.column);
}

Json ToJson(const ShardRecord& record) {
  Json chunks = Json::array();
  for (const Digest& digest : record.chunk_pixels) chunks.push_back(digest.Hex());
  return {{"level", record.place.level},   {"row", record.place.row},
          {"column", record.place.column}, {"size_bytes", record.size_bytes},
          {"digest", record.digest.Hex()}, {"chunk_pixels", std::move(chunks)}};
}

StatusOr<ShardRecord> ShardRecordFromJson(const Json& value) {
  constexpr std::string_view kWhat = "shard record";
  ShardRecord out;
  PB_ASSIGN_OR_RETURN(const std::int64_t level, JsonInt(value, "level", kWhat));
  PB_ASSIGN_OR_RETURN(out.place.row, JsonInt(value, "row", kWhat));
  PB_ASSIGN_OR_RETURN(out.place.column, JsonInt(value, "column", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t size, JsonInt(value, "size_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string digest, JsonString(value, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(out.digest, Digest::FromHex(digest));
  PB_ASSIGN_OR_RETURN(const Json* chunks, JsonMember(value, "chunk_pixels", kWhat));
  if (level < 0 || level > 1000 || size < 0 || !chunks->is_array() ||
      chunks->size() > kMaxChunkPixelsListed) {
    return absl::InvalidArgumentError("read shard record: a value is out of range");
  }
  out.place.level = static_cast<int>(level);
  out.size_bytes = static_cast<std::uint64_t>(size);
  for (const Json& chunk : *chunks) {
    if (!chunk.is_string()) return absl::InvalidArgumentError("read shard record: chunk_pixels");
    PB_ASSIGN_OR_RETURN(const Digest pixels, Digest::FromHex(chunk.get<std::string>()));
    out.chunk_pixels.push_back(pixels);
  }
  return out;
}

Status WriteShardFile(const std::string& store, const EncodedShard& shard) {
  if (shard.bytes.empty()) return absl::OkStatus();
  const std::string path = StrCat(store, "/", ShardFileName(shard.record.place));
  PB_RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  return WriteFileDurably(path, shard.bytes);
}

}  // namespace patchbay::zarr

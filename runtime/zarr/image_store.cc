#include "runtime/zarr/image_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "runtime/base/file.h"
#include "runtime/zarr/chunk_encoder.h"

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

/// One chunk's pixels, interleaved, whole.
class RawChunk {
 public:
  RawChunk(const ImageStoreSettings& settings)
      : settings_(settings),
        bytes_(static_cast<std::size_t>(settings.chunk_px * settings.chunk_px * settings.channels) *
               SizeOf(settings.dtype)) {}

  void Fill() {
    if (settings_.dtype == DType::kUint8) {
      std::memset(bytes_.data(), settings_.fill_value, bytes_.size());
      return;
    }
    auto* p = reinterpret_cast<std::uint16_t*>(bytes_.data());
    std::fill(p, p + bytes_.size() / 2, settings_.fill_value);
  }

  bool IsFill() const {
    const std::size_t element = SizeOf(settings_.dtype);
    const std::uint16_t fill = settings_.fill_value;
    // The first element equals the fill value and every one equals its neighbour.
    return std::memcmp(bytes_.data(), &fill, element) == 0 &&
           std::memcmp(bytes_.data(), bytes_.data() + element, bytes_.size() - element) == 0;
  }

  TensorView Clipped(std::int64_t height, std::int64_t width) {
    auto view = ContiguousView<3>(
        bytes_.data(), settings_.dtype,
        {settings_.chunk_px, settings_.chunk_px, static_cast<std::int64_t>(settings_.channels)});
    view.shape[0] = height;
    view.shape[1] = width;
    return view;
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  const ImageStoreSettings& settings_;
  std::vector<std::byte> bytes_;
};

void PutIndexEntry(std::vector<std::byte>& index, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t entry[2] = {offset, size};
  const auto bytes = std::as_bytes(std::span(entry));
  index.insert(index.end(), bytes.begin(), bytes.end());
}

void PutChecksum(std::vector<std::byte>& bytes, std::size_t from) {
  const std::uint32_t crc = Crc32c(std::span(bytes).subspan(from));
  const auto tail = std::as_bytes(std::span(&crc, 1));
  bytes.insert(bytes.end(), tail.begin(), tail.end());
}

/// Chunks of a level that a shard covers, and which of them meet the image.
struct ShardChunks {
  std::int64_t per_side = 0;
  std::int64_t first_row = 0, first_column = 0;
  LevelSize grid;
};

StatusOr<ShardChunks> ChunksOf(const ImageStoreSettings& settings, const LevelSize& level,
                               const ShardPlace& place) {
  const LevelSize shards = ShardGridOf(settings, level);
  if (place.row < 0 || place.row >= shards.height || place.column < 0 ||
      place.column >= shards.width || place.level < 0) {
    return absl::InvalidArgumentError(
        StrCat("encode shard: ", ShardFileName(place), ": outside the level"));
  }
  ShardChunks out;
  out.per_side = settings.shard_px / settings.chunk_px;
  out.first_row = place.row * out.per_side;
  out.first_column = place.column * out.per_side;
  out.grid = ChunkGridOf(settings, level);
  return out;
}

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

StatusOr<EncodedShard> EncodeShard(const ImageStoreSettings& settings, const LevelSize& level,
                                   const ShardPlace& place, const ChunkPixels& pixels) {
  PB_RETURN_IF_ERROR(Validate(settings));
  PB_ASSIGN_OR_RETURN(const ShardChunks chunks, ChunksOf(settings, level, place));
  EncodedShard out;
  out.record.place = place;
  ChunkEncoder encoder(settings);
  PixelHasher hasher(settings);
  RawChunk raw(settings);
  std::vector<std::byte> index;
  for (std::int64_t i = 0; i < chunks.per_side * chunks.per_side; ++i) {
    const std::int64_t row = chunks.first_row + i / chunks.per_side;
    const std::int64_t column = chunks.first_column + i % chunks.per_side;
    if (row >= chunks.grid.height || column >= chunks.grid.width) {
      PutIndexEntry(index, ~std::uint64_t{0}, ~std::uint64_t{0});
      continue;
    }
    const TensorView view =
        raw.Clipped(std::min(settings.chunk_px, level.height - row * settings.chunk_px),
                    std::min(settings.chunk_px, level.width - column * settings.chunk_px));
    if (view.shape[0] < settings.chunk_px || view.shape[1] < settings.chunk_px) raw.Fill();
    PB_RETURN_IF_ERROR(pixels(row, column, view));
    const bool fill = raw.IsFill();
    out.record.chunk_pixels.push_back(hasher.Hash(view, fill));
    if (fill) {
      PutIndexEntry(index, ~std::uint64_t{0}, ~std::uint64_t{0});
      continue;
    }
    const std::size_t begin = out.bytes.size();
    PB_RETURN_IF_ERROR(encoder.Append(raw.bytes(), out.bytes));
    PutChecksum(out.bytes, begin);
    PutIndexEntry(index, begin, out.bytes.size() - begin);
  }
  if (out.bytes.empty()) return out;
  const std::size_t begin = out.bytes.size();
  out.bytes.insert(out.bytes.end(), index.begin(), index.end());
  PutChecksum(out.bytes, begin);
  out.record.size_bytes = out.bytes.size();
  out.record.digest = Sha256Of(std::span<const std::byte>(out.bytes));
  return out;
}

Status WriteShardFile(const std::string& store, const EncodedShard& shard) {
  if (shard.bytes.empty()) return absl::OkStatus();
  const std::string path = StrCat(store, "/", ShardFileName(shard.record.place));
  PB_RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  return WriteFileDurably(path, shard.bytes);
}

}  // namespace patchbay::zarr

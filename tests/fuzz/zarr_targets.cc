// Metadata of Zarr, indexes of shards, blosc frames, and the byte stages of chunks.
#include <array>
#include <cstdlib>
#include <cstring>

#include <blosc.h>
#include <zstd.h>

#include "runtime/core/hash.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/codec/blosc.h"
#include "runtime/format/zarr/codec/chunk_codec.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/format/zarr/shard_index.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/runtime/format/zarr/bytes_in_memory.h"

namespace patchbay::fuzz {
namespace {

using namespace zarr;

constexpr std::size_t kChunkBytes = 4096;

bool ReadMetadata(std::span<const std::byte> bytes) {
  const auto document = ParseJson(AsText(bytes), "fuzz");
  if (!document.ok() || !document->is_object()) return false;
  bool taken = false;
  for (const auto& array :
       {ParseArrayV3(*document, "fuzz"), ParseArrayV2(*document, Json::object(), "fuzz")}) {
    if (!array.ok()) continue;
    taken = true;
    if (array->ChunkBytes() > kMaxChunkBytes || array->ChunksPerShard() > kMaxChunksPerShard) {
      std::abort();
    }
  }
  if (const auto it = document->find("attributes"); it != document->end()) {
    taken |= ParseMultiscales(*it, "fuzz").ok();
  }
  return taken;
}

std::vector<std::string> MetadataSeeds() {
  return {
      R"({"zarr_format":3,"node_type":"array","shape":[3,100,90],"data_type":"uint8",)"
      R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[3,64,64]}},)"
      R"("chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},)"
      R"("fill_value":255,"codecs":[{"name":"sharding_indexed","configuration":{)"
      R"("chunk_shape":[3,32,32],"codecs":[{"name":"transpose","configuration":{"order":[1,2,0]}},)"
      R"({"name":"bytes"},{"name":"blosc","configuration":{"cname":"zstd","clevel":5,)"
      R"("shuffle":"noshuffle","typesize":1,"blocksize":0}},{"name":"crc32c"}],)"
      R"("index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],)"
      R"("index_location":"end"}}],"dimension_names":["c","y","x"],"attributes":{}})",
      R"({"zarr_format":2,"shape":[100,100],"chunks":[10,10],"dtype":"<i2","compressor":)"
      R"({"id":"blosc","cname":"lz4","clevel":5,"shuffle":1},"filters":[{"id":"delta",)"
      R"("dtype":"<i2"}],"order":"F","fill_value":-3,"dimension_separator":"/"})",
      R"({"zarr_format":3,"node_type":"group","attributes":{"ome":{"version":"0.5","multiscales":)"
      R"([{"axes":[{"name":"c","type":"channel"},{"name":"y","type":"space","unit":"micrometer"},)"
      R"({"name":"x","type":"space","unit":"micrometer"}],"datasets":[{"path":"0",)"
      R"("coordinateTransformations":[{"type":"scale","scale":[1,0.5,0.5]}]}]}]}}})"};
}

/// Two chunks of one axis; the variant says where the index lies and in which order of bytes.
ArrayMetadata IndexedArray(std::size_t variant) {
  ArrayMetadata array;
  array.shape = array.shard_shape = {20};
  array.chunk_shape = {10};
  array.sharded = true;
  array.index_at_end = variant % 2 == 0;
  array.index_big_endian = variant >= 2;
  return array;
}

/// The checksum of the index is made valid, so that a damaged index passes it.
bool ReadShardIndex(std::span<const std::byte> bytes) {
  const Variant variant(bytes, 4);
  const ArrayMetadata array = IndexedArray(variant.index);
  std::string file(AsText(variant.bytes));
  const std::size_t index_bytes = IndexBytes(array);
  if (file.size() >= index_bytes) {
    const std::size_t at = array.index_at_end ? file.size() - index_bytes : 0;
    const std::uint32_t crc = Crc32c(AsBytes(file).subspan(at, index_bytes - 4));
    std::memcpy(file.data() + at + index_bytes - 4, &crc, 4);
  }
  const auto index = ReadIndex(array, BytesInMemory(file), {"c/0"});
  if (!index.ok()) return false;
  for (const IndexEntry& entry : *index) {
    if (!entry.Absent() &&
        (entry.size_bytes > file.size() || entry.offset > file.size() - entry.size_bytes)) {
      std::abort();
    }
  }
  return true;
}

std::vector<std::string> ShardIndexSeeds() {
  const std::uint64_t entries[] = {0, 60, kAbsent, kAbsent};
  const std::string index(reinterpret_cast<const char*>(entries), sizeof entries);
  return {Prefixed(0, std::string(60, 'c') + index + "    ")};
}

std::string Elements() {
  std::string out(kChunkBytes, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * i / 77);
  return out;
}

BlockScratch& Scratch() {
  static BlockScratch scratch{ZSTD_createDCtx(), {}};
  return scratch;
}

bool ReadBlosc(std::span<const std::byte> bytes) {
  const auto frame = BloscFrame::Parse(bytes, kChunkBytes);
  if (!frame.ok()) return false;
  std::vector<std::byte> out(kChunkBytes);
  if (frame->BlockWise()) {
    for (std::size_t block = 0; block < frame->blocks; ++block) {
      std::vector<std::byte> one(frame->BlockSize(block));
      (void)frame->DecodeBlock(block, Scratch(), one.data());
    }
  }
  const std::size_t items = kChunkBytes / static_cast<std::size_t>(frame->type_bytes);
  const auto type = static_cast<std::size_t>(frame->type_bytes);
  (void)frame->DecodeItems(items / 3 * type, items / 2 * type, out.data());
  return frame->DecodeAll(Scratch(), out.data()).ok();
}

std::string BloscOf(const char* codec, int shuffle, std::size_t type_bytes, std::size_t block) {
  const std::string raw = Elements();
  std::string out(raw.size() + BLOSC_MAX_OVERHEAD, '\0');
  const int size = blosc_compress_ctx(5, shuffle, type_bytes, raw.size(), raw.data(), out.data(),
                                      out.size(), codec, block, 1);
  if (size <= 0) std::abort();
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::vector<std::string> BloscSeeds() {
  return {BloscOf("zstd", BLOSC_NOSHUFFLE, 1, 1024), BloscOf("lz4", BLOSC_NOSHUFFLE, 1, 1024),
          BloscOf("lz4", BLOSC_NOSHUFFLE, 4, 4096),  BloscOf("zstd", BLOSC_SHUFFLE, 2, 1024),
          BloscOf("lz4", BLOSC_SHUFFLE, 4, 512),     BloscOf("blosclz", BLOSC_SHUFFLE, 4, 0),
          BloscOf("zlib", BLOSC_BITSHUFFLE, 2, 0)};
}

constexpr std::array kStages = {CodecKind::kZstd, CodecKind::kGzip, CodecKind::kLz4,
                                CodecKind::kBz2, CodecKind::kFletcher32};

bool ReadStage(std::span<const std::byte> bytes) {
  const Variant variant(bytes, kStages.size());
  Codec codec;
  codec.kind = kStages[variant.index];
  std::vector<std::byte> buffer;
  const auto decoded = DecodeStage(codec, variant.bytes, kChunkBytes, Scratch(), buffer);
  if (!decoded.ok()) return false;
  if (codec.kind != CodecKind::kFletcher32 && decoded->size() > kChunkBytes) std::abort();
  return true;
}

std::vector<std::string> StageSeeds() {
  const std::string raw = Elements();
  std::string zstd(ZSTD_compressBound(raw.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), raw.data(), raw.size(), 3));
  // Four bytes of size, then one literal run of four.
  const std::string lz4(
      "\x04\0\0\0\x40"
      "abcd",
      9);
  return {Prefixed(0, zstd), Prefixed(2, lz4), Prefixed(4, std::string(8, '\0'))};
}

}  // namespace

std::vector<FuzzTarget> ZarrTargets() {
  return {{"zarr_json", ReadMetadata, MetadataSeeds},
          {"shard_index", ReadShardIndex, ShardIndexSeeds},
          {"blosc", ReadBlosc, BloscSeeds},
          {"chunk_stage", ReadStage, StageSeeds}};
}

}  // namespace patchbay::fuzz

// Reading tiles of a store on one thread: ours against the floor of pread + crc32c +
// blosc_decompress_ctx. `bench_zarr.py` runs it beside zarr-python; see README.md.
//
//   bench_zarr make SLIDE STORE zstd|lz4     a store of 8192 x 8192 pixels, the slide repeated
//   bench_zarr run STORE SECONDS             one JSON object: reads per CPU second
#include <filesystem>
#include <functional>
#include <iostream>

#include <blosc.h>
#include <fcntl.h>

#include "runtime/core/hash.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/shard_index.h"
#include "runtime/os/file.h"
#include "tests/bench/zarr/cpu_rounds.h"
#include "workers/sources/image_source.h"
#include "workers/sources/zarr_source.h"

namespace patchbay {
namespace {

using bench::Case;
using bench::Places;

constexpr std::int64_t kSide = 8192, kTile = 512, kShard = 4096;
constexpr std::int64_t kGrid = kSide / kTile;
Status Make(const std::string& slide, const std::string& store, const std::string& codec) {
  PB_ASSIGN_OR_RETURN(const auto image, workers::OpenImage(Folders::OfThisUser(), slide));
  const auto& level = image->layout().levels[0];
  zarr::ImageStoreSpec spec;
  PB_ASSIGN_OR_RETURN(spec.settings.codec, zarr::StoreCodecFromName(codec));
  spec.levels = {Flat(kSide, kSide)};
  const auto scratch = image->MakeScratch();
  workers::EncodedPatch patch;
  const std::int64_t rows = level.size.y / kTile, columns = level.size.x / kTile;
  const auto pixels = [&](const Point& chunk, const TensorView& out) -> Status {
    const Box box = Box2D(chunk.y % rows * kTile, chunk.x % columns * kTile, kTile, kTile);
    PB_RETURN_IF_ERROR(image->Fetch(0, box, patch));
    return image->Decode(patch, out, 255, *scratch);
  };
  std::vector<zarr::ShardRecord> records;
  for (std::int64_t i = 0; i < (kSide / kShard) * (kSide / kShard); ++i) {
    const zarr::ShardPlace place{0, CellAt(Flat(kSide / kShard, kSide / kShard), i)};
    PB_ASSIGN_OR_RETURN(const auto shard,
                        zarr::EncodeShard(spec.settings, spec.levels[0], place, pixels));
    PB_RETURN_IF_ERROR(zarr::WriteShardFile(Folders::OfThisUser(), store, shard));
    records.push_back(shard.record);
  }
  PB_ASSIGN_OR_RETURN(const auto roots, zarr::CombineRoots(spec, records));
  return zarr::WriteStoreMetadata(Folders::OfThisUser(), store, spec, roots);
}

/// The floor: indexes read and files opened beforehand.
class Floor {
 public:
  static StatusOr<Floor> Open(const std::string& store) {
    Floor out;
    PB_ASSIGN_OR_RETURN(const auto metadata,
                        zarr::ReadArrayMetadata(Folders::OfThisUser(), store + "/0"));
    zarr::FileByteStore files(Folders::OfThisUser(), store, std::make_shared<zarr::FileCache>(16));
    for (std::int64_t i = 0; i < (kSide / kShard) * (kSide / kShard); ++i) {
      const std::string name =
          zarr::ShardFileName({0, CellAt(Flat(kSide / kShard, kSide / kShard), i)});
      PB_ASSIGN_OR_RETURN(const auto file, files.Open(name));
      if (file == nullptr) return absl::NotFoundError(name);
      PB_ASSIGN_OR_RETURN(const auto index, zarr::ReadIndex(metadata, *file, {.name = name}));
      out.files_.push_back(file);
      out.indexes_.push_back(index);
    }
    return out;
  }

  Status Read(std::int64_t row, std::int64_t column, std::byte* out) {
    const std::int64_t per_side = kShard / kTile;
    const auto shard =
        static_cast<std::size_t>(row / per_side * (kSide / kShard) + column / per_side);
    const auto slot = static_cast<std::size_t>(row % per_side * per_side + column % per_side);
    const zarr::IndexEntry& entry = indexes_[shard][slot];
    if (entry.Absent()) return absl::OkStatus();
    if (bytes_.size() < entry.size_bytes) bytes_.resize(entry.size_bytes);
    const auto part = std::span(bytes_).first(entry.size_bytes);
    PB_RETURN_IF_ERROR(files_[shard]->Read(entry.offset, part, "shard"));
    std::uint32_t stored;
    std::memcpy(&stored, part.data() + part.size() - 4, 4);
    if (Crc32c(part.first(part.size() - 4)) != stored) return absl::DataLossError("crc32c");
    const int n = blosc_decompress_ctx(part.data(), out, kTile * kTile * 3, 1);
    return n == kTile * kTile * 3 ? absl::OkStatus() : absl::DataLossError("blosc");
  }

 private:
  std::vector<std::shared_ptr<const zarr::StoredBytes>> files_;
  std::vector<zarr::ShardIndex> indexes_;
  std::vector<std::byte> bytes_;
};

/// Shards per CPU second at zstd-5: the whole of EncodeShard (checksums, both digests, index), and
/// Blosc alone.
void AddEncoders(const std::vector<std::byte>& tiles, const zarr::ImageStoreSettings& settings,
                 std::vector<Case>& cases) {
  const std::size_t tile_bytes = tiles.size() / 4;
  cases[3] = {"floor_encode", [&tiles, tile_bytes](Places&) -> Status {
                std::vector<std::byte> encoded(tile_bytes + BLOSC_MAX_OVERHEAD);
                for (std::size_t i = 0; i < 4; ++i) {
                  const int n = blosc_compress_ctx(5, BLOSC_NOSHUFFLE, 1, tile_bytes,
                                                   tiles.data() + i * tile_bytes, encoded.data(),
                                                   encoded.size(), "zstd", 131072, 1);
                  if (n <= 0) return absl::InternalError("blosc");
                }
                return absl::OkStatus();
              }};
  cases[4] = {
      "ours_encode", [&tiles, tile_bytes, settings](Places&) -> Status {
        const auto pixels = [&](const Point& chunk, const TensorView& view) {
          const std::byte* tile =
              tiles.data() + static_cast<std::size_t>(chunk.y * 2 + chunk.x) * tile_bytes;
          const auto row_bytes = static_cast<std::size_t>(view.shape[2] * view.shape[3]);
          for (std::int64_t y = 0; y < view.shape[1]; ++y, tile += row_bytes) {
            std::memcpy(view.data + y * view.stride_bytes[1], tile, row_bytes);
          }
          return absl::OkStatus();
        };
        return zarr::EncodeShard(settings, Flat(2 * kTile, 2 * kTile), {0, {}}, pixels).status();
      }};
  cases[3].batch = cases[4].batch = 1;
}

Status Run(const std::string& store, double seconds) {
  PB_ASSIGN_OR_RETURN(Floor floor, Floor::Open(store));
  PB_ASSIGN_OR_RETURN(const auto image, workers::OpenZarrImage(Folders::OfThisUser(), store));
  PB_ASSIGN_OR_RETURN(const auto array, zarr::Array::Open(Folders::OfThisUser(), store + "/0"));
  std::vector<std::byte> out(kTile * kTile * 3);
  const auto view = ContiguousView<3>(out.data(), DType::kUint8, {kTile, kTile, 3});
  workers::EncodedPatch patch;
  const auto scratch = image->MakeScratch();
  const auto read = [&](std::int64_t y, std::int64_t x) -> Status {
    PB_RETURN_IF_ERROR(image->Fetch(0, Box2D(y, x, kTile, kTile), patch));
    return image->Decode(patch, view, 255, *scratch);
  };
  std::vector<Case> cases(5);
  cases[0] = {"floor_aligned", [&](Places& p) {
                const std::int64_t row = p.Next(kGrid);
                return floor.Read(row, p.Next(kGrid), out.data());
              }};
  cases[1] = {"ours_aligned", [&](Places& p) {
                const std::int64_t row = p.Next(kGrid);
                return read(row * kTile, p.Next(kGrid) * kTile);
              }};
  cases[2] = {"ours_unaligned", [&](Places& p) {
                const std::int64_t y = p.Next(kSide - kTile);
                return read(y, p.Next(kSide - kTile));
              }};
  // Writing: a shard of four tiles against the compressor alone on the same tiles.
  std::vector<std::byte> tiles(4 * out.size());
  for (std::int64_t i = 0; i < 4; ++i) {
    PB_RETURN_IF_ERROR(read(i / 2 * kTile, i % 2 * kTile));
    std::copy(out.begin(), out.end(), tiles.begin() + i * static_cast<std::int64_t>(out.size()));
  }
  zarr::ImageStoreSettings settings;
  settings.shard = Flat(2 * kTile, 2 * kTile);
  AddEncoders(tiles, settings, cases);
  PB_RETURN_IF_ERROR(bench::MeasureAll(cases, seconds));
  bench::Print(cases);
  return absl::OkStatus();
}

}  // namespace
}  // namespace patchbay

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  patchbay::Status status = absl::InvalidArgumentError("bench_zarr make|run: see its first lines");
  if (args.size() == 4 && args[0] == "make") status = patchbay::Make(args[1], args[2], args[3]);
  if (args.size() == 3 && args[0] == "run") status = patchbay::Run(args[1], std::stod(args[2]));
  if (!status.ok()) std::cerr << patchbay::Describe(status) << "\n";
  return status.ok() ? 0 : 1;
}

// Reading boxes of a volume's store on one thread: ours against the floor of pread + crc32c +
// c-blosc. `volume_reads.py` runs it beside TensorStore and blosc2; see README.md.
//
//   bench_volumes STORE SIDE SECONDS    one JSON object: boxes of SIDE^3 voxels per CPU second, at
//                                       multiples of SIDE and at random places
#include <array>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>

#include <blosc.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/shard_index.h"
#include "tests/bench/zarr/cpu_rounds.h"
#include "workers/sources/image_source.h"
#include "workers/sources/zarr_source.h"

namespace patchbay {
namespace {

using bench::Case;
using bench::Places;

Extent ExtentOf(const std::vector<std::int64_t>& sides) { return {sides[0], sides[1], sides[2]}; }

/// The floor: files opened and indexes read beforehand. It decodes and puts nothing together.
class Floor {
 public:
  static StatusOr<Floor> Open(const std::string& store) {
    Floor out;
    PB_ASSIGN_OR_RETURN(out.metadata_,
                        zarr::ReadArrayMetadata(Folders::OfThisUser(), store + "/0"));
    out.chunk_ = ExtentOf(out.metadata_.chunk_shape);
    const Extent shard = ExtentOf(out.metadata_.shard_shape);
    out.per_shard_ = {shard.z / out.chunk_.z, shard.y / out.chunk_.y, shard.x / out.chunk_.x};
    out.grid_ = {out.metadata_.ShardGrid(0), out.metadata_.ShardGrid(1),
                 out.metadata_.ShardGrid(2)};
    zarr::FileByteStore files(Folders::OfThisUser(), store,
                              std::make_shared<zarr::FileCache>(4096));
    for (std::int64_t i = 0; i < out.grid_.Pixels(); ++i) {
      const std::string name = zarr::ShardFileName({0, CellAt(out.grid_, i)});
      PB_ASSIGN_OR_RETURN(const auto file, files.Open(name));
      zarr::ShardIndex index;
      if (file != nullptr) {
        PB_ASSIGN_OR_RETURN(index, zarr::ReadIndex(out.metadata_, *file, {.name = name}));
      }
      out.files_.push_back(file);
      out.indexes_.push_back(std::move(index));
    }
    out.decoded_.resize(static_cast<std::size_t>(out.metadata_.ChunkBytes()));
    return out;
  }

  /// All of every chunk that the box touches, or of each the Blosc blocks that hold its part.
  Status Read(const Point& origin, std::int64_t side, bool all) {
    for (std::int64_t z = origin.z / chunk_.z; z * chunk_.z < origin.z + side; ++z) {
      for (std::int64_t y = origin.y / chunk_.y; y * chunk_.y < origin.y + side; ++y) {
        for (std::int64_t x = origin.x / chunk_.x; x * chunk_.x < origin.x + side; ++x) {
          PB_RETURN_IF_ERROR(ReadChunk({z, y, x}, origin, side, all));
        }
      }
    }
    return absl::OkStatus();
  }
  std::int64_t decoded_bytes() const { return decoded_bytes_; }

 private:
  Status ReadChunk(const Point& chunk, const Point& origin, std::int64_t side, bool all) {
    const Point shard{chunk.z / per_shard_.z, chunk.y / per_shard_.y, chunk.x / per_shard_.x};
    const Point slot{chunk.z % per_shard_.z, chunk.y % per_shard_.y, chunk.x % per_shard_.x};
    const auto file = static_cast<std::size_t>(IndexOf(grid_, shard));
    if (files_[file] == nullptr) return absl::OkStatus();
    const auto& entry = indexes_[file][static_cast<std::size_t>(IndexOf(per_shard_, slot))];
    if (entry.Absent()) return absl::OkStatus();
    if (bytes_.size() < entry.size_bytes) bytes_.resize(entry.size_bytes);
    const auto part = std::span(bytes_).first(entry.size_bytes);
    PB_RETURN_IF_ERROR(files_[file]->Read(entry.offset, part, "shard"));
    std::uint32_t stored;
    std::memcpy(&stored, part.data() + part.size() - 4, 4);
    if (Crc32c(part.first(part.size() - 4)) != stored) return absl::DataLossError("crc32c");
    const bool good = all ? DecodeAll(part) : DecodeBlocks(part, chunk, origin, side);
    return good ? absl::OkStatus() : absl::DataLossError("blosc");
  }

  bool DecodeAll(std::span<const std::byte> frame) {
    const int n = blosc_decompress_ctx(frame.data(), decoded_.data(), decoded_.size(), 1);
    decoded_bytes_ += n;
    return n == static_cast<int>(decoded_.size());
  }

  /// From the block of the first voxel of the box in this chunk to that of the last.
  bool DecodeBlocks(std::span<const std::byte> frame, const Point& chunk, const Point& origin,
                    std::int64_t side) {
    std::size_t frame_bytes = 0, encoded_bytes = 0, block_bytes = 0;
    blosc_cbuffer_sizes(frame.data(), &frame_bytes, &encoded_bytes, &block_bytes);
    const auto first = [](std::int64_t at, std::int64_t corner) {
      return std::max(at - corner, {});
    };
    const auto last = [side](std::int64_t at, std::int64_t corner, std::int64_t length) {
      return std::min(at + side - corner, length) - 1;
    };
    const Point corner{chunk.z * chunk_.z, chunk.y * chunk_.y, chunk.x * chunk_.x};
    const auto voxel = static_cast<std::int64_t>(SizeOf(metadata_.dtype));
    const std::int64_t begin = IndexOf(
        chunk_, {first(origin.z, corner.z), first(origin.y, corner.y), first(origin.x, corner.x)});
    const std::int64_t end =
        IndexOf(chunk_, {last(origin.z, corner.z, chunk_.z), last(origin.y, corner.y, chunk_.y),
                         last(origin.x, corner.x, chunk_.x)}) +
        1;
    const auto block = static_cast<std::int64_t>(block_bytes);
    decoded_bytes_ += ((end * voxel + block - 1) / block - begin * voxel / block) * block;
    return blosc_getitem(frame.data(), static_cast<int>(begin), static_cast<int>(end - begin),
                         decoded_.data()) == static_cast<int>((end - begin) * voxel);
  }

  zarr::ArrayMetadata metadata_;
  Extent chunk_, per_shard_, grid_;
  std::vector<std::shared_ptr<const zarr::StoredBytes>> files_;
  std::vector<zarr::ShardIndex> indexes_;
  std::vector<std::byte> bytes_, decoded_;
  std::int64_t decoded_bytes_ = 0;
};

Status Run(const std::string& store, std::int64_t side, double seconds) {
  PB_ASSIGN_OR_RETURN(Floor floor, Floor::Open(store));
  PB_ASSIGN_OR_RETURN(const auto image, workers::OpenZarrImage(Folders::OfThisUser(), store));
  const auto& layout = image->layout();
  const Extent size = layout.levels[0].size;
  if (std::min({size.z, size.y, size.x}) < side || layout.channels != 1) {
    return absl::InvalidArgumentError("bench_volumes: the volume is smaller than a box");
  }
  constexpr std::size_t kPage = 4096;  // boxes lie as patches do in a slot
  const std::size_t box_bytes = static_cast<std::size_t>(side * side * side) * SizeOf(layout.dtype);
  std::vector<std::byte> memory(box_bytes + kPage);
  std::byte* out = memory.data() + kPage - reinterpret_cast<std::uintptr_t>(memory.data()) % kPage;
  const auto view = ContiguousView<4>(out, layout.dtype, {side, side, side, std::int64_t{1}});
  workers::EncodedPatch patch;
  const auto scratch = image->MakeScratch();
  const auto read = [&](const Point& at) -> Status {
    PB_RETURN_IF_ERROR(image->Fetch(0, Box{at.z, at.y, at.x, side, side, side}, patch));
    return image->Decode(patch, view, -1024, *scratch);
  };
  const auto anywhere = [&](Places& p) {
    const std::int64_t z = p.Next(size.z - side + 1), y = p.Next(size.y - side + 1);
    return Point{z, y, p.Next(size.x - side + 1)};
  };
  const auto aligned = [&](Places& p) {
    const std::int64_t z = p.Next(size.z / side), y = p.Next(size.y / side);
    return Point{z * side, y * side, p.Next(size.x / side) * side};
  };
  std::vector<Case> cases(4);
  cases[0] = {"floor_aligned", [&](Places& p) { return floor.Read(aligned(p), side, true); }, 1};
  cases[1] = {"ours_aligned", [&](Places& p) { return read(aligned(p)); }, 1};
  cases[2] = {"floor_random", [&](Places& p) { return floor.Read(anywhere(p), side, false); }, 1};
  cases[3] = {"ours_random", [&](Places& p) { return read(anywhere(p)); }, 1};
  PB_RETURN_IF_ERROR(bench::MeasureAll(cases, seconds));
  Places places;
  const std::int64_t before = floor.decoded_bytes();
  constexpr int kBoxes = 200;
  for (int i = 0; i < kBoxes; ++i) PB_RETURN_IF_ERROR(floor.Read(anywhere(places), side, false));
  bench::Print(cases, {{"amplification", static_cast<double>(floor.decoded_bytes() - before) /
                                             static_cast<double>(kBoxes * box_bytes)}});
  return absl::OkStatus();
}

}  // namespace
}  // namespace patchbay

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() != 3) {
    std::cerr << "bench_volumes STORE SIDE SECONDS\n";
    return 1;
  }
  const patchbay::Status status = patchbay::Run(args[0], std::stol(args[1]), std::stod(args[2]));
  if (!status.ok()) std::cerr << patchbay::Describe(status) << "\n";
  return status.ok() ? 0 : 1;
}

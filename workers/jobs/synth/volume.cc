#include "workers/jobs/synth/volume.h"

#include <cstring>
#include <filesystem>
#include <vector>

#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/strings.h"
#include "runtime/zarr/downsample.h"
#include "runtime/zarr/image_store.h"
#include "runtime/zarr/publish.h"
#include "workers/jobs/synth/abdomen.h"

namespace patchbay::workers {
namespace {

constexpr double kSliceMm = 2.5, kPixelMm = 0.78125;

Status Refuse(std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("synth volume: ", cause));
}

Status CheckSize(const Extent& size) {
  for (const std::int64_t side : {size.z, size.y, size.x}) {
    if (side < 1 || side > kMaxVolumeSide) {
      return Refuse(
          StrCat("size: ", size.z, "x", size.y, "x", size.x, ": sides are 1 to ", kMaxVolumeSide));
    }
  }
  if (size.Pixels() <= kMaxVolumeVoxels) return absl::OkStatus();
  return Refuse(StrCat("size: ", size.z, "x", size.y, "x", size.x, ": more than ", kMaxVolumeVoxels,
                       " voxels"));
}

/// The voxels of one level in memory.
struct LevelVoxels {
  Extent size;
  std::vector<std::int16_t> voxels;

  TensorView View() {
    return ContiguousView<4>(reinterpret_cast<std::byte*>(voxels.data()), DType::kInt16,
                             {size.z, size.y, size.x, 1});
  }
};

TensorView Part(const TensorView& view, const Point& begin, const Extent& size) {
  TensorView part = view;
  part.data += begin.z * view.stride_bytes[0] + begin.y * view.stride_bytes[1] +
               begin.x * view.stride_bytes[2];
  part.shape[0] = size.z;
  part.shape[1] = size.y;
  part.shape[2] = size.x;
  return part;
}

/// Makes one level after another, each with the voxels of the next.
class VolumeWriter {
 public:
  VolumeWriter(std::string store, const SynthVolumeOptions& options, const SynthProgress& progress)
      : store_(std::move(store)), field_(options.size, options.seed), progress_(progress) {
    spec_.settings = zarr::VolumeSettings(DType::kInt16);
    spec_.levels = {options.size};
    while (!spec_.settings.chunk.Covers(spec_.levels.back())) {
      spec_.levels.push_back(HalfOf(spec_.levels.back()));
    }
    spec_.spacing.z = AxisSpacing{kSliceMm, LengthUnit::kMillimeter};
    spec_.spacing.y = spec_.spacing.x = AxisSpacing{kPixelMm, LengthUnit::kMillimeter};
    spec_.attributes["source_kind"] = "synthetic";
    for (const Extent& level : spec_.levels) {
      chunks_ += zarr::ChunkGridOf(spec_.settings, level).Pixels();
    }
  }

  Status Write() {
    std::vector<zarr::ShardRecord> records;
    LevelVoxels own;  // of the level being written; of level 0 nothing is held
    for (std::size_t level = 0; level < spec_.levels.size(); ++level) {
      LevelVoxels next;
      if (level + 1 < spec_.levels.size()) {
        next.size = spec_.levels[level + 1];
        next.voxels.resize(static_cast<std::size_t>(next.size.Pixels()));
      }
      PB_RETURN_IF_ERROR(WriteLevel(static_cast<int>(level), own, next, records));
      own = std::move(next);
    }
    PB_ASSIGN_OR_RETURN(const zarr::StoreRoots roots, zarr::CombineRoots(spec_, records));
    return zarr::DraftStoreMetadata(store_, spec_, roots);
  }

 private:
  Status WriteLevel(int level, LevelVoxels& own, LevelVoxels& next,
                    std::vector<zarr::ShardRecord>& records) {
    const Extent size = spec_.levels[static_cast<std::size_t>(level)];
    const Extent grid = zarr::ShardGridOf(spec_.settings, size);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      const auto pixels = [&](const Point& chunk, const TensorView& out) {
        return FillChunk(level, chunk, own, next, out);
      };
      PB_ASSIGN_OR_RETURN(
          const zarr::EncodedShard shard,
          zarr::EncodeShard(spec_.settings, size, {level, CellAt(grid, i)}, pixels));
      PB_RETURN_IF_ERROR(zarr::WriteShardFile(store_, shard));
      records.push_back(shard.record);
    }
    return absl::OkStatus();
  }

  Status FillChunk(int level, const Point& chunk, LevelVoxels& own, LevelVoxels& next,
                   const TensorView& out) {
    const Extent& side = spec_.settings.chunk;
    const Point begin{chunk.z * side.z, chunk.y * side.y, chunk.x * side.x};
    const Extent size{out.shape[0], out.shape[1], out.shape[2]};
    for (std::int64_t z = 0; z < size.z; ++z) {
      for (std::int64_t y = 0; y < size.y; ++y) {
        auto* row = reinterpret_cast<std::int16_t*>(out.data + z * out.stride_bytes[0] +
                                                    y * out.stride_bytes[1]);
        const Point at{begin.z + z, begin.y + y, begin.x};
        if (level == 0) {
          for (std::int64_t x = 0; x < size.x; ++x) row[x] = field_.At({at.z, at.y, at.x + x});
        } else {
          std::memcpy(row, own.voxels.data() + IndexOf(own.size, at),
                      static_cast<std::size_t>(size.x) * sizeof(std::int16_t));
        }
      }
    }
    ++done_;
    if (progress_ && !progress_(static_cast<double>(done_) / static_cast<double>(chunks_))) {
      return absl::CancelledError("synth volume: cancelled");
    }
    if (next.voxels.empty()) return absl::OkStatus();
    // Chunks have even sides, so each is halved by itself.
    const Point half{begin.z / 2, begin.y / 2, begin.x / 2};
    return zarr::DownsampleByTwo(out, Part(next.View(), half, HalfOf(size)));
  }

  const std::string store_;
  const AbdomenField field_;
  const SynthProgress& progress_;
  zarr::ImageStoreSpec spec_;
  std::int64_t chunks_ = 0, done_ = 0;
};

}  // namespace

StatusOr<SynthVolumeOptions> SynthVolumeOptionsFromJson(const Json& json) {
  SynthVolumeOptions options;
  if (!json.is_object()) return Refuse("options: no object");
  for (const auto& [key, value] : json.items()) {
    if (key == "seed" && value.is_number_unsigned()) {
      options.seed = value.get<std::uint64_t>();
    } else if (key == "size" && value.is_array() && value.size() == 3 &&
               value[0].is_number_integer() && value[1].is_number_integer() &&
               value[2].is_number_integer()) {
      options.size = {value[0].get<std::int64_t>(), value[1].get<std::int64_t>(),
                      value[2].get<std::int64_t>()};
    } else {
      return Refuse(StrCat("option '", key, "': unknown, or not of its type"));
    }
  }
  PB_RETURN_IF_ERROR(CheckSize(options.size));
  return options;
}

Status SynthVolume(const std::string& path, const SynthVolumeOptions& options,
                   const SynthProgress& progress) {
  PB_RETURN_IF_ERROR(CheckSize(options.size));
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    return absl::AlreadyExistsError(
        StrCat("synth volume: ", path, ": something of that name is already there"));
  }
  const std::string staging = StrCat(path, ".partial-", Hex64(RandomU64()));
  VolumeWriter writer(staging, options, progress);
  Status status = writer.Write();
  if (status.ok()) status = zarr::PublishStore(staging, path);
  if (status.ok()) return status;
  std::error_code error;
  std::filesystem::remove_all(staging, error);
  return status;
}

}  // namespace patchbay::workers

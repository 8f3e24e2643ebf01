#include "workers/jobs/task/volume_writer.h"

#include <cstring>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/downsample.h"

namespace patchbay::workers {
namespace {

/// The voxels of one level in memory.
struct LevelVoxels {
  Extent size;
  DType dtype = DType::kInt16;
  std::vector<std::byte> bytes;

  TensorView View() { return ContiguousView<4>(bytes.data(), dtype, {size.z, size.y, size.x, 1}); }
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
  VolumeWriter(const Folders& allowed, const std::string& store, const zarr::ImageStoreSpec& spec,
               const std::vector<VolumeRow>& channels, const VolumeDone& done)
      : allowed_(allowed), store_(store), spec_(spec), channels_(channels), done_(done) {
    for (const Extent& level : spec_.levels) {
      chunks_ += static_cast<std::int64_t>(zarr::ChunksOfLevel(spec_.settings, level));
    }
  }

  StatusOr<WrittenVolume> Write() {
    if (channels_.size() != static_cast<std::size_t>(spec_.settings.Planes())) {
      return Internal("write volume: rows of ", channels_.size(), " channels");
    }
    std::vector<zarr::ShardRecord> records;
    for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
      channel_ = channel;
      PB_RETURN_IF_ERROR(WriteChannel(records));
    }
    WrittenVolume written;
    PB_ASSIGN_OR_RETURN(written.roots, zarr::CombineRoots(spec_, records));
    for (const zarr::ShardRecord& record : records) written.stored_bytes += record.size_bytes;
    PB_RETURN_IF_ERROR(zarr::DraftStoreMetadata(allowed_, store_, spec_, written.roots));
    return written;
  }

 private:
  Status WriteChannel(std::vector<zarr::ShardRecord>& records) {
    LevelVoxels own;  // voxels of the level being written; those of level 0 are not held
    for (std::size_t level = 0; level < spec_.levels.size(); ++level) {
      LevelVoxels next;
      next.dtype = spec_.settings.dtype;
      if (level + 1 < spec_.levels.size()) {
        next.size = spec_.levels[level + 1];
        next.bytes.resize(static_cast<std::size_t>(next.size.Pixels()) * SizeOf(next.dtype));
      }
      PB_RETURN_IF_ERROR(WriteLevel(static_cast<int>(level), own, next, records));
      own = std::move(next);
    }
    return absl::OkStatus();
  }

  Status WriteLevel(int level, LevelVoxels& own, LevelVoxels& next,
                    std::vector<zarr::ShardRecord>& records) {
    const Extent size = spec_.levels[static_cast<std::size_t>(level)];
    const Extent grid = zarr::ShardGridOf(spec_.settings, size);
    const bool has_channels = spec_.settings.axes == zarr::StoreAxes::kCzyx;
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      const zarr::ShardPlace place{level, CellAt(grid, i),
                                   has_channels ? static_cast<int>(channel_) : -1};
      const auto pixels = [&](const Point& chunk, const TensorView& out) {
        return FillChunk(level, chunk, own, next, out);
      };
      PB_ASSIGN_OR_RETURN(const zarr::EncodedShard shard,
                          zarr::EncodeShard(spec_.settings, size, place, pixels));
      PB_RETURN_IF_ERROR(zarr::WriteShardFile(allowed_, store_, shard));
      records.push_back(shard.record);
    }
    return absl::OkStatus();
  }

  Status FillChunk(int level, const Point& chunk, LevelVoxels& own, LevelVoxels& next,
                   const TensorView& out) {
    const Extent& side = spec_.settings.chunk;
    const Point begin{chunk.z * side.z, chunk.y * side.y, chunk.x * side.x};
    const Extent size{out.shape[0], out.shape[1], out.shape[2]};
    const std::size_t element = SizeOf(spec_.settings.dtype);
    for (std::int64_t z = 0; z < size.z; ++z) {
      for (std::int64_t y = 0; y < size.y; ++y) {
        std::byte* row = out.data + z * out.stride_bytes[0] + y * out.stride_bytes[1];
        const Point at{begin.z + z, begin.y + y, begin.x};
        if (level == 0) {
          channels_[channel_](at, size.x, row);
        } else {
          const auto from = static_cast<std::size_t>(IndexOf(own.size, at)) * element;
          std::memcpy(row, own.bytes.data() + from, static_cast<std::size_t>(size.x) * element);
        }
      }
    }
    ++written_;
    if (done_ && !done_(static_cast<double>(written_) / static_cast<double>(chunks_))) {
      return Cancelled("write volume: cancelled");
    }
    if (next.bytes.empty()) return absl::OkStatus();
    // Chunks have even sides, so each is halved by itself.
    const Point half{begin.z / 2, begin.y / 2, begin.x / 2};
    const TensorView part = Part(next.View(), half, HalfOf(size));
    return spec_.image_label.is_null() ? zarr::DownsampleByTwo(out, part)
                                       : zarr::HalveLabels(out, part);
  }

  const Folders& allowed_;
  const std::string& store_;
  const zarr::ImageStoreSpec& spec_;
  const std::vector<VolumeRow>& channels_;
  const VolumeDone& done_;
  std::size_t channel_ = 0;  ///< the one being written
  std::int64_t chunks_ = 0, written_ = 0;
};

}  // namespace

std::vector<Extent> VolumeLevels(const Extent& finest, const zarr::ImageStoreSettings& settings) {
  std::vector<Extent> levels = {finest};
  while (!settings.chunk.Covers(levels.back())) levels.push_back(HalfOf(levels.back()));
  return levels;
}

StatusOr<WrittenVolume> WriteVolumeStore(const Folders& allowed, const std::string& store,
                                         const zarr::ImageStoreSpec& spec, const VolumeRow& row,
                                         const VolumeDone& done) {
  return WriteVolumeStore(allowed, store, spec, std::vector<VolumeRow>{row}, done);
}

StatusOr<WrittenVolume> WriteVolumeStore(const Folders& allowed, const std::string& store,
                                         const zarr::ImageStoreSpec& spec,
                                         const std::vector<VolumeRow>& channels,
                                         const VolumeDone& done) {
  return VolumeWriter(allowed, store, spec, channels, done).Write();
}

}  // namespace patchbay::workers

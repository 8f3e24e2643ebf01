// One zarr shard: pixels from the source or from the finer level, encoded, committed by rename.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/zarr/array.h"
#include "runtime/zarr/downsample.h"
#include "workers/jobs/ingest.h"
#include "workers/jobs/ingest_slide.h"

namespace patchbay::workers {
namespace {

/// Most pixels decoded at once; a larger shard is made in bands of whole chunk rows. Larger means
/// fewer source tiles decoded twice at the seams; below malloc's largest heap block the memory is
/// taken from the kernel once.
constexpr std::int64_t kMaxBandBytes = std::int64_t{16} << 20;
constexpr std::size_t kMaxRecordBytes = 16u << 20;
constexpr std::size_t kMaxShardFileBytes = std::size_t{4} << 30;

/// Pixels of a box of one output level, interleaved. Not initialised: whoever resizes it fills it.
struct Pixels {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t capacity = 0;
  TensorView view;

  void Resize(std::int64_t height, std::int64_t width, const zarr::ImageStoreSettings& store) {
    const std::int64_t pixel = store.channels * static_cast<std::int64_t>(SizeOf(store.dtype));
    const auto size = static_cast<std::size_t>(height * width * pixel);
    if (size > capacity) {
      bytes = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity = size;
    }
    view = ContiguousView<3>(bytes.get(), store.dtype, {height, width, store.channels});
  }
};

/// Reads boxes of output levels: from the source, from the finer level's zarr shards, or by
/// averaging on the fly.
class LevelReader {
 public:
  LevelReader(const TaskContext& context, const IngestSlide& slide, const std::string& slide_key)
      : context_(context), slide_(slide), store_path_(slide.folders.Store(slide_key)) {}

  /// `box` lies inside the level. Absent source tiles are the store's fill value.
  Status Read(int level_index, const Box& box, Pixels& out) {
    PB_RETURN_IF_ERROR(context_.CheckCancelled());
    const OutputLevel& level = slide_.levels[static_cast<std::size_t>(level_index)];
    out.Resize(box.height, box.width, slide_.store);
    if (level.from_source) return ReadSource(level.source_level, box, out);
    const OutputLevel& parent = slide_.levels[static_cast<std::size_t>(level.parent)];
    const Box wide = Intersect(Box2D(box.y * 2, box.x * 2, box.height * 2, box.width * 2),
                               Box2D(0, 0, parent.height, parent.width));
    if (!parent.stored) {
      Pixels finer;
      PB_RETURN_IF_ERROR(Read(level.parent, wide, finer));
      return zarr::DownsampleByTwo(finer.view, out.view);
    }
    finer_.Resize(wide.height, wide.width, slide_.store);
    PB_RETURN_IF_ERROR(ReadStored(StoredIndex(slide_.levels, level.parent), wide, finer_));
    return zarr::DownsampleByTwo(finer_.view, out.view);
  }

  /// Pieces of the source that are absent in what was read so far.
  std::uint64_t absent_pieces() const { return absent_pieces_; }

 private:
  Status ReadSource(int source_level, const Box& box, Pixels& out) {
    if (scratch_ == nullptr) scratch_ = slide_.source->MakeScratch();
    PB_RETURN_IF_ERROR(slide_.source->Fetch(source_level, box, encoded_));
    for (const EncodedPiece& piece : encoded_.pieces) absent_pieces_ += piece.absent ? 1 : 0;
    return slide_.source->Decode(encoded_, out.view,
                                 static_cast<std::uint8_t>(slide_.store.fill_value), *scratch_);
  }

  /// Axes of the array are c, y, x; the pixels are interleaved.
  Status ReadStored(int stored, const Box& box, Pixels& out) {
    PB_ASSIGN_OR_RETURN(const zarr::Array array,
                        zarr::Array::Open(StrCat(store_path_, "/", stored)));
    zarr::Region region;
    region.origin = {0, box.y, box.x};
    region.shape = {slide_.store.channels, box.height, box.width};
    TensorView planar = out.view;
    planar.shape = {slide_.store.channels, box.height, box.width};
    planar.stride_bytes = {out.view.stride_bytes[2], out.view.stride_bytes[0],
                           out.view.stride_bytes[1]};
    return array.ReadRegion(region, planar);
  }

  const TaskContext& context_;
  const IngestSlide& slide_;
  std::string store_path_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch encoded_;
  Pixels finer_;  ///< of a stored parent
  std::uint64_t absent_pieces_ = 0;
};

/// Gives EncodeShard its chunks out of bands of decoded rows, so that a tile that spans chunks is
/// decoded once.
class BandedPixels {
 public:
  BandedPixels(TaskContext& context, const IngestSlide& slide, LevelReader& reader,
               const zarr::ShardPlace& place)
      : context_(context),
        slide_(slide),
        reader_(reader),
        level_(LevelOfStored(slide.levels, place.level)) {
    const OutputLevel& level = slide.levels[static_cast<std::size_t>(level_)];
    const std::int64_t side = slide.store.shard_px;
    shard_ = Intersect(Box2D(place.row * side, place.column * side, side, side),
                       Box2D(0, 0, level.height, level.width));
    const std::int64_t chunk = slide.store.chunk_px;
    const std::int64_t row_bytes =
        shard_.width * slide.store.channels * static_cast<std::int64_t>(SizeOf(slide.store.dtype));
    band_rows_ =
        std::max<std::int64_t>(1, kMaxBandBytes / std::max<std::int64_t>(1, row_bytes * chunk)) *
        chunk;
  }

  Status Chunk(std::int64_t row, std::int64_t column, const TensorView& out) {
    const std::int64_t chunk = slide_.store.chunk_px;
    const std::int64_t y = row * chunk;
    if (band_.height == 0 || y < band_.y || y >= band_.y + band_.height)
      PB_RETURN_IF_ERROR(ReadBand(y));
    const std::int64_t pixel = pixels_.view.stride_bytes[1];
    const std::byte* from = pixels_.view.data + (y - band_.y) * pixels_.view.stride_bytes[0] +
                            (column * chunk - band_.x) * pixel;
    for (std::int64_t r = 0; r < out.shape[0]; ++r) {
      std::memcpy(out.data + r * out.stride_bytes[0], from + r * pixels_.view.stride_bytes[0],
                  static_cast<std::size_t>(out.shape[1] * pixel));
    }
    context_.AddProgress();
    return context_.CheckCancelled();
  }

  std::uint64_t raw_bytes() const {
    return static_cast<std::uint64_t>(shard_.Pixels() * slide_.store.channels) *
           SizeOf(slide_.store.dtype);
  }

 private:
  Status ReadBand(std::int64_t y) {
    band_ = Intersect(Box2D(y, shard_.x, band_rows_, shard_.width), shard_);
    context_.AddProgress();
    return reader_.Read(level_, band_, pixels_);
  }

  TaskContext& context_;
  const IngestSlide& slide_;
  LevelReader& reader_;
  int level_;
  Box shard_, band_{0, 0, 0, 1, 0, 0};
  std::int64_t band_rows_ = 0;
  Pixels pixels_;
};

/// The record of a shard that an earlier lease committed, if its file is still what the record
/// says.
StatusOr<std::optional<std::string>> CommittedRecord(const IngestFolders& folders,
                                                     const std::string& slide_key,
                                                     const zarr::ShardPlace& place) {
  const auto text = ReadFile(folders.Record(slide_key, RecordName(place)), kMaxRecordBytes);
  if (!text.ok()) return std::optional<std::string>();
  const auto json = ParseJson(*text, "shard record");
  if (!json.ok()) return std::optional<std::string>();
  const auto record = zarr::ShardRecordFromJson(*json);
  if (!record.ok() || record->place != place) return std::optional<std::string>();
  if (record->size_bytes == 0) return std::optional<std::string>(*text);
  const auto bytes = ReadFile(StrCat(folders.Store(slide_key), "/", zarr::ShardFileName(place)),
                              kMaxShardFileBytes);
  if (!bytes.ok() || bytes->size() != record->size_bytes || Sha256Of(*bytes) != record->digest) {
    return std::optional<std::string>();
  }
  return std::optional<std::string>(*text);
}

/// Writes below the lease's own folder, then renames into the store: a lease that lost its right
/// can at worst repeat the same bytes, and once the staging folder is gone it can do nothing.
Status CommitShard(const TaskContext& context, const IngestFolders& folders,
                   const std::string& slide_key, const zarr::EncodedShard& shard,
                   const std::string& record) {
  const std::string lease = StrCat(folders.Staging(slide_key), "/", context.lease.incarnation, "-",
                                   context.lease.counter, "-", Hex64(RandomU64()));
  if (mkdir(lease.c_str(), 0700) != 0) return FromErrno("mkdir", lease, errno);
  const auto commit = [&]() -> Status {
    if (shard.record.size_bytes > 0) {
      PB_RETURN_IF_ERROR(zarr::WriteShardFile(lease, shard));
      const std::string name = zarr::ShardFileName(shard.record.place);
      const std::string target = StrCat(folders.Store(slide_key), "/", name);
      const std::string folder = std::filesystem::path(target).parent_path().string();
      PB_RETURN_IF_ERROR(MakeDirectories(folder));
      PB_RETURN_IF_ERROR(context.CheckCancelled());
      if (rename(StrCat(lease, "/", name).c_str(), target.c_str()) != 0)
        return FromErrno("rename", target, errno);
      PB_RETURN_IF_ERROR(SyncDirectory(folder));
    }
    return WriteFileDurably(folders.Record(slide_key, RecordName(shard.record.place)),
                            AsBytes(record), 0600);
  };
  const Status status = commit();
  std::error_code ignored;
  std::filesystem::remove_all(lease, ignored);
  return status;
}

StatusOr<zarr::ShardPlace> PlaceOf(const TaskContext& context, const IngestSlide& slide) {
  constexpr std::string_view kWhat = "ingest payload";
  zarr::ShardPlace place;
  PB_ASSIGN_OR_RETURN(const std::int64_t level, JsonInt(context.payload, "level", kWhat));
  PB_ASSIGN_OR_RETURN(place.row, JsonInt(context.payload, "row", kWhat));
  PB_ASSIGN_OR_RETURN(place.column, JsonInt(context.payload, "column", kWhat));
  const std::vector<zarr::LevelSize> sizes = StoredSizes(slide.levels);
  if (level < 0 || level >= static_cast<std::int64_t>(sizes.size())) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": level: ", level, " is not in the store"));
  }
  place.level = static_cast<int>(level);
  const zarr::LevelSize grid =
      zarr::ShardGridOf(slide.store, sizes[static_cast<std::size_t>(level)]);
  if (place.row < 0 || place.row >= grid.height || place.column < 0 || place.column >= grid.width) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": shard ", place.row, ",", place.column, " is outside the level"));
  }
  return place;
}

StatusOr<TaskOutput> MakeShard(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestSlide slide, OpenIngestSlide(context));
  PB_ASSIGN_OR_RETURN(const std::string slide_key,
                      JsonString(context.payload, "slide_key", "ingest payload"));
  PB_ASSIGN_OR_RETURN(const zarr::ShardPlace place, PlaceOf(context, slide));
  context.AddProgress();
  LevelReader reader(context, slide, slide_key);
  BandedPixels pixels(context, slide, reader, place);
  TaskOutput output;
  output.progress_bytes = pixels.raw_bytes();
  PB_ASSIGN_OR_RETURN(const auto committed, CommittedRecord(slide.folders, slide_key, place));
  std::string record = committed.value_or("");
  if (!committed) {
    const zarr::LevelSize size = StoredSizes(slide.levels)[static_cast<std::size_t>(place.level)];
    PB_ASSIGN_OR_RETURN(
        const zarr::EncodedShard shard,
        zarr::EncodeShard(slide.store, size, place,
                          [&](std::int64_t row, std::int64_t column, const TensorView& out) {
                            return pixels.Chunk(row, column, out);
                          }));
    Json json = zarr::ToJson(shard.record);
    json["absent_pieces"] = reader.absent_pieces();
    record = DumpJson(json);
    PB_RETURN_IF_ERROR(CommitShard(context, slide.folders, slide_key, shard, record));
  }
  output.result = DumpJson({{"record", Sha256Of(record).Hex()}});
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunIngestShard(TaskContext& context) {
  return WithoutPaths(context, MakeShard(context));
}

}  // namespace patchbay::workers

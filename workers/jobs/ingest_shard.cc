// One zarr shard: pixels from the source or from the finer level, encoded, committed by rename.
#include <filesystem>
#include <future>

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/zarr/shard_encoder.h"
#include "workers/jobs/ingest.h"
#include "workers/jobs/ingest_pixels.h"
#include "workers/jobs/ingest_slide.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxRecordBytes = 16u << 20;
constexpr std::size_t kMaxShardFileBytes = std::size_t{4} << 30;

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

/// One task's shard and what is needed to make and commit it.
class ShardTask {
 public:
  ShardTask(TaskContext& context, const IngestSlide& slide, const std::string& slide_key,
            const zarr::ShardPlace& place)
      : context_(context),
        slide_(slide),
        slide_key_(slide_key),
        place_(place),
        column_(ColumnOf(slide, place.level)),
        reader_(context, slide, slide_key),
        pixels_(context, slide, reader_, place) {}

  /// The text of the committed record.
  StatusOr<std::string> Make() {
    if (place_.level != column_.finest) {
      if (const auto assembled = FromPieces(); assembled.ok()) {
        PB_RETURN_IF_ERROR(Commit(*assembled));
        RemovePieces();
        return record_;
      }
      column_.sizes = {column_.sizes[static_cast<std::size_t>(place_.level - column_.finest)]};
    }
    zarr::ShardEncoder encoder(slide_.store, column_.sizes, place_);
    encoder.AfterChunk([this] {
      context_.AddProgress();
      return context_.CheckCancelled();
    });
    PB_ASSIGN_OR_RETURN(const zarr::EncodedShard shard,
                        encoder.Encode([this](std::int64_t row) { return pixels_.Rows(row); }));
    // The disk takes the shard while the coarser levels are made. The future waits at its end.
    const auto committing = std::async(std::launch::async, [&] { return Commit(shard); });
    PB_ASSIGN_OR_RETURN(const auto pieces, encoder.EncodeCoarser());
    for (const zarr::ShardPiece& piece : pieces) {
      PB_RETURN_IF_ERROR(ReplaceFile(PiecePath(piece.level, place_.row, place_.column),
                                     zarr::SerialisePiece(piece), 0600));
    }
    raw_pixels_ = pixels_.pixels();
    for (std::size_t i = 1; i < column_.sizes.size(); ++i)
      raw_pixels_ += pixels_.pixels() >> (2 * i);
    committing.wait();
    PB_RETURN_IF_ERROR(status_);
    return record_;
  }

  /// Pixels that were encoded.
  std::int64_t raw_pixels() const { return raw_pixels_; }

 private:
  Status Commit(const zarr::EncodedShard& shard) {
    Json json = zarr::ToJson(shard.record);
    json["absent_pieces"] = reader_.absent_pieces();
    record_ = DumpJson(json);
    status_ = CommitShard(context_, slide_.folders, slide_key_, shard, record_);
    return status_;
  }

  std::string PiecePath(int level, std::int64_t row, std::int64_t column) const {
    return StrCat(slide_.folders.Pieces(slide_key_), "/", RecordName({level, row, column}));
  }

  /// The shards of the column's finest level that lie below this one.
  std::vector<std::string> PiecePaths() const {
    std::vector<std::string> paths;
    for (const zarr::ShardPlace& finest : FinestBelow(slide_, column_, place_)) {
      paths.push_back(PiecePath(place_.level, finest.row, finest.column));
    }
    return paths;
  }

  /// Any error means: not to be had, make it from pixels.
  StatusOr<zarr::EncodedShard> FromPieces() const {
    std::vector<zarr::ShardPiece> pieces;
    for (const std::string& path : PiecePaths()) {
      PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxShardFileBytes));
      PB_ASSIGN_OR_RETURN(zarr::ShardPiece piece, zarr::ParsePiece(AsBytes(text)));
      pieces.push_back(std::move(piece));
      context_.AddProgress();
      PB_RETURN_IF_ERROR(context_.CheckCancelled());
    }
    return zarr::AssembleShard(
        slide_.store, column_.sizes[static_cast<std::size_t>(place_.level - column_.finest)],
        place_, pieces);
  }

  void RemovePieces() const {
    for (const std::string& path : PiecePaths()) unlink(path.c_str());
  }

  TaskContext& context_;
  const IngestSlide& slide_;
  const std::string& slide_key_;
  const zarr::ShardPlace place_;
  LevelColumn column_;
  LevelReader reader_;
  ShardPixels pixels_;
  std::string record_;
  Status status_;
  std::int64_t raw_pixels_ = 0;
};

StatusOr<TaskOutput> MakeShard(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestSlide slide, OpenIngestSlide(context));
  PB_ASSIGN_OR_RETURN(const std::string slide_key,
                      JsonString(context.payload, "slide_key", "ingest payload"));
  PB_ASSIGN_OR_RETURN(const zarr::ShardPlace place, PlaceOf(context, slide));
  context.AddProgress();
  PB_ASSIGN_OR_RETURN(const auto committed, CommittedRecord(slide.folders, slide_key, place));
  std::string record = committed.value_or("");
  TaskOutput output;
  if (!committed) {
    ShardTask task(context, slide, slide_key, place);
    PB_ASSIGN_OR_RETURN(record, task.Make());
    output.progress_bytes = static_cast<std::uint64_t>(task.raw_pixels() * slide.store.channels) *
                            SizeOf(slide.store.dtype);
  }
  output.result = DumpJson({{"record", Sha256Of(record).Hex()}});
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunIngestShard(TaskContext& context) {
  return WithoutPaths(context, MakeShard(context));
}

}  // namespace patchbay::workers

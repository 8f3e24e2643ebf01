// One zarr shard: pixels from the source or from the finer level, encoded, committed by rename.
#include <filesystem>
#include <future>

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/zarr/shard_encoder.h"
#include "workers/jobs/ingest.h"
#include "workers/jobs/ingest_check.h"
#include "workers/jobs/ingest_pixels.h"
#include "workers/jobs/ingest_slide.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30;

/// The file's way into the store. Returns its stamp.
StatusOr<std::string> MoveIntoStore(const TaskContext& context, const std::string& lease,
                                    const std::string& store, const zarr::EncodedShard& shard) {
  if (shard.record.size_bytes == 0) return StampOf("", shard.record);
  PB_RETURN_IF_ERROR(zarr::WriteShardFile(lease, shard));
  const std::string name = zarr::ShardFileName(shard.record.place);
  const std::string written = StrCat(lease, "/", name), target = StrCat(store, "/", name);
  const std::string folder = std::filesystem::path(target).parent_path().string();
  PB_ASSIGN_OR_RETURN(const std::string before, StampOf(written, shard.record));
  PB_RETURN_IF_ERROR(MakeDirectories(folder));
  PB_RETURN_IF_ERROR(context.CheckCancelled());
  if (rename(written.c_str(), target.c_str()) != 0) return FromErrno("rename", target, errno);
  PB_RETURN_IF_ERROR(SyncDirectory(folder));
  PB_ASSIGN_OR_RETURN(const std::string after, StampOf(target, shard.record));
  return StampAfterRename(before, after);
}

/// Writes below the lease's own folder, then renames into the store: a lease that lost its right
/// can at worst repeat the same bytes, and once the staging folder is gone it can do nothing.
StatusOr<CommittedShard> CommitShard(const TaskContext& context, const IngestFolders& folders,
                                     const std::string& slide_key, const zarr::EncodedShard& shard,
                                     const std::string& record) {
  const std::string lease = StrCat(folders.Staging(slide_key), "/", context.lease.incarnation, "-",
                                   context.lease.counter, "-", Hex64(RandomU64()));
  if (mkdir(lease.c_str(), 0700) != 0) return FromErrno("mkdir", lease, errno);
  CommittedShard committed;
  const auto commit = [&]() -> Status {
    PB_ASSIGN_OR_RETURN(committed.stamp,
                        MoveIntoStore(context, lease, folders.Store(slide_key), shard));
    committed.record = Sha256Of(record);
    return WriteFileDurably(folders.Record(slide_key, RecordName(shard.record.place)),
                            AsBytes(record), 0600);
  };
  const Status status = commit();
  std::error_code ignored;
  std::filesystem::remove_all(lease, ignored);
  PB_RETURN_IF_ERROR(status);
  return committed;
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

  StatusOr<CommittedShard> Make() {
    if (place_.level != column_.finest) {
      if (const auto assembled = FromPieces(); assembled.ok()) {
        StatusOr<CommittedShard> committed = Commit(*assembled);
        if (committed.ok()) RemovePieces();
        return committed;
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
    auto committing = std::async(std::launch::async, [&] { return Commit(shard); });
    PB_ASSIGN_OR_RETURN(const auto pieces, encoder.EncodeCoarser());
    for (const zarr::ShardPiece& piece : pieces) {
      PB_RETURN_IF_ERROR(ReplaceFile(PiecePath(piece.level, place_.row, place_.column),
                                     zarr::SerialisePiece(piece), 0600));
    }
    raw_pixels_ = pixels_.pixels();
    for (std::size_t i = 1; i < column_.sizes.size(); ++i)
      raw_pixels_ += pixels_.pixels() >> (2 * i);
    return committing.get();
  }

  /// Pixels that were encoded.
  std::int64_t raw_pixels() const { return raw_pixels_; }

 private:
  StatusOr<CommittedShard> Commit(const zarr::EncodedShard& shard) const {
    Json json = zarr::ToJson(shard.record);
    json["absent_pieces"] = reader_.absent_pieces();
    return CommitShard(context_, slide_.folders, slide_key_, shard, DumpJson(json));
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
      PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxPieceBytes));
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
  std::int64_t raw_pixels_ = 0;
};

StatusOr<TaskOutput> MakeShard(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestSlide slide, OpenIngestSlide(context));
  PB_ASSIGN_OR_RETURN(const std::string slide_key,
                      JsonString(context.payload, "slide_key", "ingest payload"));
  PB_ASSIGN_OR_RETURN(const zarr::ShardPlace place, PlaceOf(context, slide));
  context.AddProgress();
  PB_ASSIGN_OR_RETURN(const auto adopted, AdoptShard(context, slide, slide_key, place));
  TaskOutput output;
  if (adopted) {
    output.result = DumpJson(ToJson(*adopted));
    return output;
  }
  ShardTask task(context, slide, slide_key, place);
  PB_ASSIGN_OR_RETURN(const CommittedShard committed, task.Make());
  output.progress_bytes = static_cast<std::uint64_t>(task.raw_pixels() * slide.store.channels) *
                          SizeOf(slide.store.dtype);
  output.result = DumpJson(ToJson(committed));
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunIngestShard(TaskContext& context) {
  return WithoutPaths(context, MakeShard(context));
}

}  // namespace patchbay::workers

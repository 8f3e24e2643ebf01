// Zarr shards: from the pixels of the source or a finer level, or joined out of what was encoded
// with a finer level, committed by rename.
#include <filesystem>
#include <future>
#include <memory>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/shard_encoder.h"
#include "runtime/os/direct_file.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/ingest/check.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/pixels.h"
#include "workers/jobs/ingest/slide.h"
#include "workers/jobs/task/progress.h"

namespace patchbay::workers {
namespace {

/// A thread of its own, which its future waits for; where no thread is to be had, when asked for.
constexpr auto kBesideIfPossible = std::launch::async | std::launch::deferred;
constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30;

/// The shard's file into the store, whose folder is still to be synced.
Status MoveIntoStore(const TaskContext& context, const LeaseFolder& lease,
                     const std::string& target, const zarr::EncodedShard& shard) {
  const std::string written = lease.File("shard");
  PB_RETURN_IF_ERROR(CreateFileDirectly(context.allowed, written, shard.bytes, 0644));
  PB_RETURN_IF_ERROR(
      MakeDirectories(context.allowed, std::filesystem::path(target).parent_path().string()));
  PB_RETURN_IF_ERROR(context.CheckCancelled());
  return RenameFile(context.allowed, written, target);
}

/// The files committed beside a shard's bytes.
struct ShardPapers {
  std::string record;
  std::vector<std::byte> colours;  ///< a serialised histogram; empty: none
};

/// Content first, then the names of the files, the record's last: after success all of it survives
/// a power cut. A record without its files, which a cut in between may leave, is no committed
/// shard. Returns the SHA-256 of the record's text.
StatusOr<Digest> CommitShard(TaskContext& context, const IngestTask& task,
                             const zarr::EncodedShard& shard, const ShardPapers& papers) {
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, task));
  const std::string target = StrCat(task.Store(), "/", zarr::ShardFileName(shard.record.place));
  const std::string record_path = task.Record(RecordName(shard.record.place));
  const bool has_file = shard.record.size_bytes > 0;
  if (has_file) PB_RETURN_IF_ERROR(MoveIntoStore(context, *lease, target, shard));
  context.AddProgress();
  if (!papers.colours.empty()) {
    PB_RETURN_IF_ERROR(
        CreateFileDirectly(context.allowed, lease->File("colours"), papers.colours, 0600));
    PB_RETURN_IF_ERROR(RenameFile(context.allowed, lease->File("colours"),
                                  task.Colours(RecordName(shard.record.place))));
    PB_RETURN_IF_ERROR(SyncDirectory(context.allowed, task.Staging() + "/colours"));
  }
  PB_RETURN_IF_ERROR(
      CreateFileDirectly(context.allowed, lease->File("record"), AsBytes(papers.record), 0600));
  PB_RETURN_IF_ERROR(RenameFile(context.allowed, lease->File("record"), record_path));
  PB_RETURN_IF_ERROR(
      SyncDirectory(context.allowed, std::filesystem::path(record_path).parent_path().string()));
  if (has_file) {
    PB_RETURN_IF_ERROR(
        SyncDirectory(context.allowed, std::filesystem::path(target).parent_path().string()));
  }
  context.AddProgress();
  return Sha256Of(papers.record);
}

/// One zarr shard that is made and committed.
class ShardInWork {
 public:
  ShardInWork(TaskContext& context, const IngestSlide& slide, const zarr::ShardPlace& place)
      : context_(context),
        slide_(slide),
        place_(place),
        column_(ColumnOf(slide, place.level)),
        reader_(context, slide),
        pixels_(context, slide, reader_, place) {}

  /// From its pixels, and the pieces of the column's coarser levels with it.
  StatusOr<Digest> Make() {
    zarr::ShardEncoder encoder(slide_.store, column_.sizes, place_);
    PB_ASSIGN_OR_RETURN(const zarr::EncodedShard shard, Encode(encoder));
    colours_ = pixels_.TakeColours();
    // The disk takes the shard while the coarser levels are made.
    auto committing = std::async(kBesideIfPossible, [&] { return Commit(shard); });
    PB_ASSIGN_OR_RETURN(const auto pieces, encoder.EncodeCoarser());
    for (const zarr::ShardPiece& piece : pieces) {
      PB_RETURN_IF_ERROR(ReplaceFile(context_.allowed, PiecePath(piece.level, place_.at),
                                     zarr::SerialisePiece(piece), 0600));
    }
    for (std::size_t i = 1; i < column_.sizes.size(); ++i) {
      raw_pixels_ += pixels_.pixels() >> (2 * i);
    }
    return committing.get();
  }

  /// From the pieces that its column's finest level left, or from pixels where they are lost.
  StatusOr<zarr::EncodedShard> Join() {
    if (auto joined = FromPieces(); joined.ok()) return joined;
    zarr::ShardEncoder encoder(slide_.store, {Size()}, place_);
    return Encode(encoder);
  }

  StatusOr<Digest> Commit(const zarr::EncodedShard& shard) const {
    Json json = zarr::ToJson(shard.record);
    json["absent_pieces"] = reader_.absent_pieces();
    ShardPapers papers;
    if (place_.level == 0 && HasColours(slide_.store)) {
      papers.colours = ops::SerialiseHistogram(colours_);
      json["colours"] = Sha256Of(papers.colours).Hex();
    }
    papers.record = DumpJson(json);
    return CommitShard(context_, slide_, shard, papers);
  }

  /// Once it is committed.
  void RemovePieces() const {
    for (const std::string& path : PiecePaths()) {
      RemoveFile(context_.allowed, path).IgnoreError();
      context_.AddProgress();
    }
  }

  /// Pixels that were encoded.
  std::int64_t raw_pixels() const { return raw_pixels_; }

 private:
  StatusOr<zarr::EncodedShard> Encode(zarr::ShardEncoder& encoder) {
    encoder.AfterChunk(ProgressOf(context_));
    raw_pixels_ += pixels_.pixels();
    return encoder.Encode([this](const Point& chunk) { return pixels_.Rows(chunk.y); });
  }

  Extent Size() const {
    return column_.sizes[static_cast<std::size_t>(place_.level - column_.finest)];
  }

  std::string PiecePath(int level, const Point& at) const {
    return StrCat(slide_.Pieces(), "/", RecordName({level, at}));
  }

  /// The shards of the column's finest level that lie below this one.
  std::vector<std::string> PiecePaths() const {
    std::vector<std::string> paths;
    for (const zarr::ShardPlace& finest : FinestBelow(slide_, column_, place_)) {
      paths.push_back(PiecePath(place_.level, finest.at));
    }
    return paths;
  }

  /// Any error means: not to be had.
  StatusOr<zarr::EncodedShard> FromPieces() const {
    std::vector<zarr::ShardPiece> pieces;
    for (const std::string& path : PiecePaths()) {
      PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(context_.allowed, path, kMaxPieceBytes));
      PB_ASSIGN_OR_RETURN(zarr::ShardPiece piece, zarr::ParsePiece(AsBytes(text)));
      pieces.push_back(std::move(piece));
      context_.AddProgress();
    }
    return zarr::AssembleShard(slide_.store, Size(), place_, pieces);
  }

  TaskContext& context_;
  const IngestSlide& slide_;
  const zarr::ShardPlace place_;
  const LevelColumn column_;
  LevelReader reader_;
  ShardPixels pixels_;
  ops::StainHistogram colours_;
  std::int64_t raw_pixels_ = 0;
};

TaskOutput OutputOf(const IngestSlide& slide, MadeShards made, std::int64_t raw_pixels) {
  TaskOutput output;
  output.result = DumpJson(JsonOf(made));
  output.progress_bytes =
      static_cast<std::uint64_t>(raw_pixels * slide.store.channels) * SizeOf(slide.store.dtype);
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunIngestShard(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const ShardRequest order, OpenShardRequest(context));
  std::vector<Digest> done;
  std::int64_t raw_pixels = 0;
  for (const zarr::ShardPlace& place : order.places) {
    context.AddProgress();
    PB_ASSIGN_OR_RETURN(const auto adopted, AdoptShard(context, order.slide, place));
    if (adopted) {
      done.push_back(*adopted);
      continue;
    }
    ShardInWork shard(context, order.slide, place);
    PB_ASSIGN_OR_RETURN(const Digest committed, shard.Make());
    done.push_back(committed);
    raw_pixels += shard.raw_pixels();
  }
  return OutputOf(order.slide, {std::move(done)}, raw_pixels);
}

/// While the disk takes the first shards, the next are joined.
StatusOr<TaskOutput> RunIngestJoin(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const ShardRequest order, OpenShardRequest(context));
  std::vector<std::future<StatusOr<Digest>>> committing;
  std::int64_t raw_pixels = 0;
  for (const zarr::ShardPlace& place : order.places) {
    context.AddProgress();
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_ASSIGN_OR_RETURN(const auto adopted, AdoptShard(context, order.slide, place));
    if (adopted) {
      committing.push_back(std::async(std::launch::deferred,
                                      [record = *adopted] { return StatusOr<Digest>(record); }));
      continue;
    }
    auto shard = std::make_shared<ShardInWork>(context, order.slide, place);
    PB_ASSIGN_OR_RETURN(zarr::EncodedShard joined, shard->Join());
    raw_pixels += shard->raw_pixels();
    committing.push_back(std::async(kBesideIfPossible, [shard, bytes = std::move(joined)]() {
      StatusOr<Digest> committed = shard->Commit(bytes);
      if (committed.ok()) shard->RemovePieces();
      return committed;
    }));
  }
  std::vector<Digest> done;
  for (auto& future : committing) {
    PB_ASSIGN_OR_RETURN(const Digest committed, future.get());
    done.push_back(committed);
  }
  return OutputOf(order.slide, {std::move(done)}, raw_pixels);
}

}  // namespace patchbay::workers

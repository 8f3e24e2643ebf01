// Zarr shards: from the pixels of the source or a finer level, or joined out of what was encoded
// with a finer level, committed by rename.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/opened_store.h"
#include "runtime/format/zarr/shard_encoder.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/work_meter.h"
#include "workers/jobs/ingest/check.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_slide.h"
#include "workers/jobs/ingest/kept_shard.h"
#include "workers/jobs/ingest/tile_source.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

/// Memory for pixels that grows as needed. Not initialised: the caller fills it.
class PixelBuffer {
 public:
  /// Interleaved pixels (depth, height, width, channels) of the store's kind; the content is kept
  /// if the buffer need not grow.
  TensorView View(const Extent& size, const zarr::ImageStoreSettings& store);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

/// Reads boxes of output levels. Not thread-safe.
class LevelReader {
 public:
  /// All of it outlives the reader.
  LevelReader(TaskContext& context, const IngestSlide& slide)
      : context_(context), slide_(slide), store_path_(slide.Store()) {
    encoded_.after_piece = ProgressOf(context);
  }

  /// `box` lies inside the level; `out` has its shape. Absent source tiles are the store's fill
  /// value. A level made together with finer ones is averaged from the finest of them, which is
  /// stored; the others may not be there yet.
  Status Read(int level, const Box& box, const TensorView& out);

  /// Absent pieces of the source in all reads so far, counted in each read.
  std::uint64_t absent_pieces() const { return absent_pieces_; }
  /// Counts again the absent pieces of the last read that reach to level row `y` or beyond, as if
  /// the rows from `y` on had been read separately.
  void CountAbsentAgain(std::int64_t y);

 private:
  Status ReadHalved(int level, const Box& box, const TensorView& out);
  Status ReadSource(int source_level, const Box& box, const TensorView& out);
  Status ReadStored(int stored, const Box& box, const TensorView& out);

  TaskContext& context_;
  const IngestSlide& slide_;
  std::string store_path_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch encoded_;
  std::uint64_t absent_pieces_ = 0;
};

/// The rows of one zarr shard, from top to bottom, for zarr::ShardEncoder. Reads whole rows of the
/// source's tiles and keeps the part that reaches into the next chunk row, so that no tile row is
/// decoded twice. Not thread-safe.
class ShardPixels {
 public:
  /// All of it outlives this.
  ShardPixels(TaskContext& context, const IngestSlide& slide, LevelReader& reader,
              const zarr::ShardPlace& place);

  /// See zarr::ShardRows; `row` counts the level's chunk rows.
  StatusOr<ConstTensorView> Rows(std::int64_t row);
  /// The colour histogram of the rows that Rows returned, each row counted once. Empty unless they
  /// are RGB of the finest level.
  ops::StainHistogram TakeColours() { return colours_.Take(); }
  std::int64_t pixels() const { return shard_.Pixels(); }

 private:
  std::int64_t EndOfTiles(std::int64_t y) const;
  Status CountColours(const ConstTensorView& rows, std::int64_t begin);

  TaskContext& context_;
  const IngestSlide& slide_;
  LevelReader& reader_;
  const int level_;
  const bool counts_colours_;
  ops::StainCounter colours_;
  std::int64_t counted_end_ = 0;  ///< level rows before it are counted
  Box shard_;
  std::int64_t band_rows_ = 0, tile_rows_ = 1;
  std::int64_t held_begin_ = 0, held_end_ = 0;  ///< level rows that are in `held_`, from its top
  PixelBuffer held_;
};

/// Most pixels handed over at once; a larger shard is made in bands of whole chunk rows. Larger
/// means more chunks hashed side by side; below malloc's largest heap block the memory is taken
/// from the kernel once.
constexpr std::int64_t kMaxBandBytes = std::int64_t{16} << 20;
/// Source tiles of more rows are decoded in parts.
constexpr std::int64_t kMaxTileRows = 512;

TensorView PixelBuffer::View(const Extent& size, const zarr::ImageStoreSettings& store) {
  const auto bytes = static_cast<std::size_t>(size.Pixels() * store.PixelBytes());
  if (bytes > capacity_) {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    capacity_ = bytes;
  }
  return ContiguousView<4>(bytes_.get(), store.dtype,
                           {size.z, size.y, size.x, static_cast<std::int64_t>(store.channels)});
}

Status LevelReader::Read(int level_index, const Box& box, const TensorView& out) {
  const OutputLevel& level = slide_.levels[static_cast<std::size_t>(level_index)];
  if (level.from_source) return ReadSource(level.source_level, box, out);
  const int finest = FinestOfColumn(slide_.levels, level_index, zarr::CoarserLevels(slide_.store));
  if (level_index - finest < 2) return ReadHalved(level_index, box, out);
  // Every level in between takes four times the memory: by squares, that is bounded.
  const std::int64_t side = slide_.store.chunk.y;
  for (std::int64_t y = 0; y < box.height; y += side) {
    for (std::int64_t x = 0; x < box.width; x += side) {
      const Box square = Box2D(box.y + y, box.x + x, std::min(side, box.height - y),
                               std::min(side, box.width - x));
      TensorView part = out;
      part.data += y * out.stride_bytes[1] + x * out.stride_bytes[2];
      part.shape[1] = square.height;
      part.shape[2] = square.width;
      PB_RETURN_IF_ERROR(ReadHalved(level_index, square, part));
    }
  }
  return absl::OkStatus();
}

/// Averages the parent's pixels: stored ones where they are sure to be there.
Status LevelReader::ReadHalved(int level_index, const Box& box, const TensorView& out) {
  PB_RETURN_IF_ERROR(context_.CheckCancelled());
  context_.AddProgress();
  const OutputLevel& level = slide_.levels[static_cast<std::size_t>(level_index)];
  const OutputLevel& parent = slide_.levels[static_cast<std::size_t>(level.parent)];
  const int finest = FinestOfColumn(slide_.levels, level_index, zarr::CoarserLevels(slide_.store));
  const Box wide =
      Intersect(Box2D(box.y * 2, box.x * 2, box.height * 2, box.width * 2), WholeOf(parent.size));
  PixelBuffer buffer;
  const TensorView finer = buffer.View(wide.Shape(), slide_.store);
  if (parent.stored && (finest == level_index || finest == level.parent)) {
    PB_RETURN_IF_ERROR(ReadStored(StoredIndex(slide_.levels, level.parent), wide, finer));
  } else {
    PB_RETURN_IF_ERROR(Read(level.parent, wide, finer));
  }
  return zarr::DownsampleByTwo(finer, out);
}

Status LevelReader::ReadSource(int source_level, const Box& box, const TensorView& out) {
  if (scratch_ == nullptr) scratch_ = slide_.source->MakeScratch();
  PB_RETURN_IF_ERROR(slide_.source->Fetch(source_level, box, encoded_));
  for (const EncodedPiece& piece : encoded_.pieces) absent_pieces_ += piece.absent ? 1 : 0;
  return slide_.source->Decode(encoded_, out, slide_.store.fill_value, *scratch_);
}

void LevelReader::CountAbsentAgain(std::int64_t y) {
  const LevelLayout& level =
      slide_.source->layout().levels[static_cast<std::size_t>(encoded_.level)];
  for (const EncodedPiece& piece : encoded_.pieces) {
    absent_pieces_ += piece.absent && (piece.chunk.y + 1) * level.chunk.y > y ? 1 : 0;
  }
}

Status LevelReader::ReadStored(int stored, const Box& box, const TensorView& out) {
  PB_ASSIGN_OR_RETURN(const zarr::Array array,
                      zarr::Array::Open(slide_.folders.allowed, StrCat(store_path_, "/", stored)));
  const std::int64_t side = slide_.store.chunk.y;
  for (std::int64_t y = 0, height = 0; y < box.height; y += height) {
    height = std::min(side - (box.y + y) % side, box.height - y);  // to the end of a chunk row
    const Box rows = Box2D(box.y + y, box.x, height, box.width);
    TensorView part = out;
    part.data += y * out.stride_bytes[1];
    part.shape[1] = rows.height;
    PB_RETURN_IF_ERROR(
        array.ReadRegion(zarr::RegionOf(slide_.store, rows), zarr::AlongAxes(slide_.store, part)));
    PB_RETURN_IF_ERROR(StepOf(context_));
  }
  return absl::OkStatus();
}

ShardPixels::ShardPixels(TaskContext& context, const IngestSlide& slide, LevelReader& reader,
                         const zarr::ShardPlace& place)
    : context_(context),
      slide_(slide),
      reader_(reader),
      level_(LevelOfStored(slide.levels, place.level)),
      counts_colours_(place.level == 0 && HasColours(slide)) {
  const OutputLevel& level = slide.levels[static_cast<std::size_t>(level_)];
  const std::int64_t chunk = slide.store.chunk.y;
  const Extent& side = slide.store.shard;
  shard_ =
      Intersect(BoxAt({0, place.at.y * side.y, place.at.x * side.x}, side), WholeOf(level.size));
  const std::int64_t chunk_row_bytes = shard_.width * chunk * slide.store.PixelBytes();
  band_rows_ = std::max<std::int64_t>(1, kMaxBandBytes / chunk_row_bytes) * chunk;
  held_begin_ = held_end_ = counted_end_ = shard_.y;
  if (!level.from_source) return;
  const auto& source = slide.source->layout().levels[static_cast<std::size_t>(level.source_level)];
  if (source.chunk.y <= kMaxTileRows) {
    tile_rows_ = std::max<std::int64_t>(1, source.chunk.y);
  }
}

/// The end of the tile row that row y - 1 lies in, or of the shard.
std::int64_t ShardPixels::EndOfTiles(std::int64_t y) const {
  return std::min((y + tile_rows_ - 1) / tile_rows_ * tile_rows_, shard_.y + shard_.height);
}

StatusOr<ConstTensorView> ShardPixels::Rows(std::int64_t row) {
  const std::int64_t begin = row * slide_.store.chunk.y;
  const std::int64_t end = std::min(begin + band_rows_, shard_.y + shard_.height);
  TensorView all = held_.View(Flat(band_rows_ + tile_rows_, shard_.width), slide_.store);
  const auto row_bytes = static_cast<std::size_t>(all.stride_bytes[1]);
  if (begin < held_begin_ || begin > held_end_) held_end_ = begin;
  if (begin > held_begin_ && held_end_ > begin) {
    // The number of absent tiles is in the byte root: a tile in two bands has always counted in
    // both.
    reader_.CountAbsentAgain(begin);
    std::memmove(all.data, all.data + static_cast<std::size_t>(begin - held_begin_) * row_bytes,
                 static_cast<std::size_t>(held_end_ - begin) * row_bytes);
  }
  held_begin_ = begin;
  if (held_end_ < end) {
    const Box missing = Box2D(held_end_, shard_.x, EndOfTiles(end) - held_end_, shard_.width);
    TensorView out = all;
    out.data += static_cast<std::size_t>(held_end_ - begin) * row_bytes;
    out.shape[1] = missing.height;
    context_.AddProgress();
    PB_RETURN_IF_ERROR(reader_.Read(level_, missing, out));
    held_end_ = missing.y + missing.height;
  }
  all.shape[1] = end - begin;
  if (counts_colours_) PB_RETURN_IF_ERROR(CountColours(all, begin));
  return ConstTensorView(all);
}

/// Counts the colours of `rows`, which begin at level row `begin`, without rows that were counted
/// before.
Status ShardPixels::CountColours(const ConstTensorView& rows, std::int64_t begin) {
  const std::int64_t counted = std::max<std::int64_t>(counted_end_ - begin, 0);
  if (counted >= rows.shape[1]) return absl::OkStatus();
  ConstTensorView fresh = rows;
  fresh.data += counted * rows.stride_bytes[1];
  fresh.shape[1] -= counted;
  counted_end_ = begin + rows.shape[1];
  return colours_.Add(fresh);
}

/// On a thread of its own, or, if no thread can be started, when the future is waited for.
constexpr auto kBesideIfPossible = std::launch::async | std::launch::deferred;
constexpr std::size_t kMaxStoredPieceBytes = std::size_t{1} << 30;

/// The sidecar files of a shard, committed with its bytes.
struct ShardSidecars {
  std::string record;
  std::vector<std::byte> colours;  ///< a serialised histogram; empty: none
};

/// Content first, then the names of the files, the record's last: after success all of it survives
/// a power cut. A record without its files, which a cut in between may leave, is no committed
/// shard. Returns the SHA-256 of the record's text.
StatusOr<Digest> CommitShard(TaskContext& context, const IngestTask& task, const LeaseFolder& lease,
                             const zarr::EncodedShard& shard, const ShardSidecars& sidecars) {
  const std::string target = StrCat(task.Store(), "/", zarr::ShardFileName(shard.record.place));
  const std::string record_path = task.Record(RecordName(shard.record.place));
  const bool has_file = shard.record.size_bytes > 0;
  // Tiles that are copied wait for the disk alone: their check takes them from memory.
  const Pages pages = task.settings.KeepsTiles() ? Pages::kKept : Pages::kNone;
  if (has_file) PB_RETURN_IF_ERROR(lease.Put(context, target, shard.bytes, 0644, pages));
  context.AddProgress();
  if (!sidecars.colours.empty()) {
    PB_RETURN_IF_ERROR(
        lease.Put(context, task.Colours(RecordName(shard.record.place)), sidecars.colours, 0600));
    PB_RETURN_IF_ERROR(SyncDirectory(context.allowed, task.Staging() + "/colours"));
  }
  PB_RETURN_IF_ERROR(lease.Put(context, record_path, AsBytes(sidecars.record), 0600));
  PB_RETURN_IF_ERROR(
      SyncDirectory(context.allowed, std::filesystem::path(record_path).parent_path().string()));
  if (has_file) {
    PB_RETURN_IF_ERROR(
        SyncDirectory(context.allowed, std::filesystem::path(target).parent_path().string()));
  }
  context.AddProgress();
  return Sha256Of(sidecars.record);
}

/// One zarr shard that is made and committed.
class ShardInWork {
 public:
  ShardInWork(TaskContext& context, const IngestSlide& slide, const LeaseFolder& lease,
              const zarr::ShardPlace& place)
      : context_(context),
        slide_(slide),
        lease_(lease),
        place_(place),
        column_(ColumnOf(slide, place.level)),
        reader_(context, slide),
        pixels_(context, slide, reader_, place) {}

  /// Makes the shard from its pixels, and the pieces of the column's coarser levels with it.
  StatusOr<Digest> Make() {
    zarr::ShardEncoder encoder(slide_.store, column_.sizes, place_);
    PB_ASSIGN_OR_RETURN(const zarr::EncodedShard shard, Encode(encoder));
    colours_ = pixels_.TakeColours();
    // The disk takes the shard while the coarser levels are made.
    auto committing = std::async(kBesideIfPossible, Metered([&] { return Commit(shard); }));
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

  /// The shard made of the slide's tiles.
  StatusOr<zarr::WholeShard> Keep() {
    PB_ASSIGN_OR_RETURN(KeptShard kept, KeepShard(context_, slide_, place_));
    colours_ = std::move(kept.colours);
    absent_pieces_ = kept.absent_pieces;
    raw_pixels_ += pixels_.pixels();
    return std::move(kept.shard);
  }

  /// From the pieces that its column's finest level left, or from pixels where they are lost.
  StatusOr<zarr::EncodedShard> Join() {
    if (auto joined = FromPieces(); joined.ok()) return joined;
    zarr::ShardEncoder encoder(slide_.store, {Size()}, place_);
    return Encode(encoder);
  }

  StatusOr<Digest> Commit(const zarr::EncodedShard& shard) const {
    RecordText record{shard.record, reader_.absent_pieces() + absent_pieces_, {}};
    ShardSidecars sidecars;
    if (place_.level == 0 && HasColours(slide_)) {
      sidecars.colours = ops::SerialiseHistogram(colours_);
      record.colours = Sha256Of(sidecars.colours);
    }
    sidecars.record = DumpJson(JsonOf(record));
    return CommitShard(context_, slide_, lease_, shard, sidecars);
  }

  /// Once it is committed: of a column's finest level there are none.
  void RemovePieces() const {
    if (place_.level == column_.finest) return;
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
      PB_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(context_.allowed, path, kMaxStoredPieceBytes));
      PB_ASSIGN_OR_RETURN(zarr::ShardPiece piece, zarr::ParsePiece(AsBytes(text)));
      pieces.push_back(std::move(piece));
      context_.AddProgress();
    }
    return zarr::AssembleShard(slide_.store, Size(), place_, pieces);
  }

  TaskContext& context_;
  const IngestSlide& slide_;
  const LeaseFolder& lease_;
  const zarr::ShardPlace place_;
  const LevelColumn column_;
  LevelReader reader_;
  ShardPixels pixels_;
  ops::StainHistogram colours_;
  std::uint64_t absent_pieces_ = 0;  ///< absent among kept tiles
  std::int64_t raw_pixels_ = 0;
};

TaskOutput OutputOf(const IngestSlide& slide, MadeShards made, std::int64_t raw_pixels) {
  TaskOutput output;
  output.result = DumpJson(JsonOf(made));
  output.progress_bytes =
      static_cast<std::uint64_t>(raw_pixels * slide.store.channels) * SizeOf(slide.store.dtype);
  return output;
}

/// Commits of shards beside the making of the next ones, in the order of the task's places.
class CommitsBeside {
 public:
  Status Adopt(const Digest& record) {
    under_way_.push_back(
        std::async(std::launch::deferred, [record] { return StatusOr<Digest>(record); }));
    return absl::OkStatus();
  }

  /// Waits for the oldest where many are under way.
  Status Add(std::shared_ptr<ShardInWork> shard, zarr::EncodedShard made) {
    if (under_way_.size() >= kMostUnderWay) PB_RETURN_IF_ERROR(AwaitOldest());
    raw_pixels_ += shard->raw_pixels();
    auto commit = [shard = std::move(shard), bytes = std::move(made)]() {
      StatusOr<Digest> committed = shard->Commit(bytes);
      if (committed.ok()) shard->RemovePieces();
      return committed;
    };
    under_way_.push_back(std::async(kBesideIfPossible, Metered(std::move(commit))));
    return absl::OkStatus();
  }

  /// Once all are committed.
  StatusOr<TaskOutput> Finish(const IngestSlide& slide) {
    while (!under_way_.empty()) PB_RETURN_IF_ERROR(AwaitOldest());
    return OutputOf(slide, {std::move(done_)}, raw_pixels_);
  }

 private:
  /// Each holds a shard's bytes. More hide more of the disk's latency.
  static constexpr std::size_t kMostUnderWay = 4;

  Status AwaitOldest() {
    PB_ASSIGN_OR_RETURN(const Digest record, under_way_.front().get());
    under_way_.pop_front();
    done_.push_back(record);
    return absl::OkStatus();
  }

  std::deque<std::future<StatusOr<Digest>>> under_way_;
  std::vector<Digest> done_;
  std::int64_t raw_pixels_ = 0;
};

/// Shards of the slide's tiles. Their files are hashed two at a time.
class KeptShards {
 public:
  KeptShards(const IngestSlide& slide, CommitsBeside& commits) : slide_(slide), commits_(commits) {}

  Status Add(std::shared_ptr<ShardInWork> shard) {
    PB_ASSIGN_OR_RETURN(wholes_.emplace_back(), shard->Keep());
    shards_.push_back(std::move(shard));
    return wholes_.size() < 2 ? absl::OkStatus() : Flush();
  }

  Status Flush() {
    PB_ASSIGN_OR_RETURN(auto made, zarr::AssembleShards(slide_.store, std::exchange(wholes_, {})));
    const auto shards = std::exchange(shards_, {});
    for (std::size_t i = 0; i < made.size(); ++i) {
      PB_RETURN_IF_ERROR(commits_.Add(shards[i], std::move(made[i])));
    }
    return absl::OkStatus();
  }

 private:
  const IngestSlide& slide_;
  CommitsBeside& commits_;
  std::vector<std::shared_ptr<ShardInWork>> shards_;
  std::vector<zarr::WholeShard> wholes_;
};

/// In the order of places: `adopt` gets the record of a shard that an earlier lease committed,
/// `make` any other shard.
Status ForEachShard(TaskContext& context, const ShardRequest& request, const LeaseFolder& lease,
                    const std::function<Status(const Digest&)>& adopt,
                    const std::function<Status(std::shared_ptr<ShardInWork>)>& make) {
  for (const zarr::ShardPlace& place : request.places) {
    PB_RETURN_IF_ERROR(StepOf(context));
    PB_ASSIGN_OR_RETURN(const auto adopted, AdoptShard(context, request.slide, place));
    PB_RETURN_IF_ERROR(
        adopted ? adopt(*adopted)
                : make(std::make_shared<ShardInWork>(context, request.slide, lease, place)));
  }
  return absl::OkStatus();
}

StatusOr<TaskOutput> KeepShards(TaskContext& context, const ShardRequest& request,
                                const LeaseFolder& lease) {
  CommitsBeside commits;
  KeptShards kept(request.slide, commits);
  const auto adopt = [&](const Digest& record) {
    PB_RETURN_IF_ERROR(kept.Flush());
    return commits.Adopt(record);
  };
  PB_RETURN_IF_ERROR(ForEachShard(context, request, lease, adopt,
                                  [&](auto shard) { return kept.Add(std::move(shard)); }));
  PB_RETURN_IF_ERROR(kept.Flush());
  return commits.Finish(request.slide);
}

StatusOr<TaskOutput> JoinShards(TaskContext& context, const ShardRequest& request,
                                const LeaseFolder& lease) {
  CommitsBeside commits;
  const auto adopt = [&](const Digest& record) { return commits.Adopt(record); };
  PB_RETURN_IF_ERROR(ForEachShard(context, request, lease, adopt, [&](auto shard) -> Status {
    PB_ASSIGN_OR_RETURN(zarr::EncodedShard joined, shard->Join());
    return commits.Add(std::move(shard), std::move(joined));
  }));
  return commits.Finish(request.slide);
}

/// One shard after another, from pixels.
StatusOr<TaskOutput> MakeShards(TaskContext& context, const ShardRequest& request,
                                const LeaseFolder& lease) {
  std::vector<Digest> done;
  std::int64_t raw_pixels = 0;
  for (const zarr::ShardPlace& place : request.places) {
    context.AddProgress();
    PB_ASSIGN_OR_RETURN(const auto adopted, AdoptShard(context, request.slide, place));
    if (adopted) {
      done.push_back(*adopted);
      continue;
    }
    ShardInWork shard(context, request.slide, lease, place);
    PB_ASSIGN_OR_RETURN(const Digest committed, shard.Make());
    done.push_back(committed);
    raw_pixels += shard.raw_pixels();
  }
  return OutputOf(request.slide, {std::move(done)}, raw_pixels);
}

}  // namespace

StatusOr<TaskOutput> RunIngestShard(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const ShardRequest request, OpenShardRequest(context));
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, request.slide.Staging()));
  if (request.slide.settings.KeepsTiles()) return KeepShards(context, request, *lease);
  auto output = MakeShards(context, request, *lease);
  if (output.ok()) return output;
  return NamingTile(request.slide, output.status());
}

StatusOr<TaskOutput> RunIngestJoin(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const ShardRequest request, OpenShardRequest(context));
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, request.slide.Staging()));
  return JoinShards(context, request, *lease);
}

}  // namespace patchbay::workers

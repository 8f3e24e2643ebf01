#include "runtime/format/zarr/label_writer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <future>
#include <memory>
#include <span>
#include <utility>

#include "runtime/core/runs.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/label_cells.h"
#include "runtime/format/zarr/shard_encoder.h"
#include "runtime/format/zarr/shared_loop.h"
#include "runtime/os/file.h"
#include "runtime/os/work_meter.h"

namespace patchbay::zarr {
namespace {

constexpr std::int64_t kChunkSide = 512;
constexpr std::int64_t kHalf = kChunkSide / 2;
constexpr std::int64_t kShardSide = 4096;
constexpr int kCodecLevel = 1;
/// Chunks that one thread encodes before it looks for more; even (see HalveInto). Larger means that
/// threads wait longer for each other at a row's end.
constexpr std::size_t kTogether = 2;

/// A row of chunks of one level.
struct ChunkRow {
  std::int64_t index = 0;
  std::vector<LabelCell> cells;
  std::vector<EncodedCell> encoded;  ///< by column
};

/// Where shards go, and who is told of each.
struct ShardTarget {
  const Folders& allowed;
  const std::string& folder;
  const std::function<void()>& after_shard;
};

/// The rows of a level that are still needed, and the zarr shards they go into.
class LevelRows {
 public:
  LevelRows(const ShardTarget& target, const ImageStoreSettings& settings, int level, Extent size,
            LabelShards& out)
      : target_(target),
        settings_(settings),
        level_(level),
        size_(size),
        grid_(ChunkGridOf(settings, size)),
        out_(out) {}

  const Extent& size() const { return size_; }
  const Extent& grid() const { return grid_; }
  std::int64_t rows_done() const { return rows_done_; }
  const std::deque<std::shared_ptr<ChunkRow>>& kept() const { return kept_; }

  /// Chunks in the part of the level that chunk row `row` covers, clipped.
  std::int64_t HeightOf(std::int64_t row) const {
    return std::min(settings_.chunk.y, size_.y - row * settings_.chunk.y);
  }
  std::int64_t WidthOf(std::int64_t column) const {
    return std::min(settings_.chunk.x, size_.x - column * settings_.chunk.x);
  }
  /// Row `index` of the level, without pixels.
  std::shared_ptr<ChunkRow> Empty(std::int64_t index) const {
    return std::make_shared<ChunkRow>(
        ChunkRow{index, std::vector<LabelCell>(static_cast<std::size_t>(grid_.x)), {}});
  }
  CellPart PartOf(const ChunkRow& row, std::size_t column) const {
    return {&row.cells[column], HeightOf(row.index), WidthOf(static_cast<std::int64_t>(column))};
  }

  /// Takes a row whose chunks are encoded.
  Status Add(std::shared_ptr<ChunkRow> added) {
    ChunkRow& row = *added;
    const Extent per_shard = settings_.ChunksPerShard();
    const std::int64_t shards = (grid_.x + per_shard.x - 1) / per_shard.x;
    if (row.index % per_shard.y == 0) Begin(row.index, shards);
    for (std::size_t x = 0; x < row.encoded.size(); ++x) {
      const auto& [bytes, pixels] = row.encoded[x];
      AppendEncoded(bytes, pixels, pieces_[x / static_cast<std::size_t>(per_shard.x)]);
    }
    row.encoded = {};
    const bool is_last = row.index + 1 == grid_.y;
    if (is_last || (row.index + 1) % per_shard.y == 0) PB_RETURN_IF_ERROR(WriteShards());
    ++rows_done_;
    kept_.push_back(std::move(added));
    return absl::OkStatus();
  }

  /// Forgets the rows that end above pixel row `y`.
  void Forget(std::int64_t y) {
    while (!kept_.empty() && (kept_.front()->index + 1) * settings_.chunk.y <= y) kept_.pop_front();
  }

 private:
  void Begin(std::int64_t row, std::int64_t shards) {
    const Extent per_shard = settings_.ChunksPerShard();
    pieces_.clear();
    for (std::int64_t s = 0; s < shards; ++s) {
      ShardPiece piece;
      piece.level = level_;
      piece.first = {0, row, s * per_shard.x};
      piece.grid = {1, std::min(per_shard.y, grid_.y - row),
                    std::min(per_shard.x, grid_.x - s * per_shard.x)};
      pieces_.push_back(std::move(piece));
    }
  }

  Status WriteShards() {
    const Extent per_shard = settings_.ChunksPerShard();
    for (ShardPiece& piece : pieces_) {
      const ShardPlace place{level_, {0, piece.first.y / per_shard.y, piece.first.x / per_shard.x}};
      PB_ASSIGN_OR_RETURN(EncodedShard shard,
                          AssembleShard(settings_, size_, place, std::move(piece)));
      out_.stored_bytes += shard.record.size_bytes;
      if (!shard.bytes.empty()) {
        const std::string file = StrCat(target_.folder, "/", ShardFileName(place));
        PB_RETURN_IF_ERROR(MakeDirectories(target_.allowed, file.substr(0, file.rfind('/'))));
        PB_RETURN_IF_ERROR(ReplaceFile(target_.allowed, file, shard.bytes));
        if (target_.after_shard) target_.after_shard();
      }
      out_.records.push_back(std::move(shard.record));
    }
    return absl::OkStatus();
  }

  const ShardTarget target_;
  const ImageStoreSettings& settings_;
  const int level_;
  const Extent size_, grid_;
  LabelShards& out_;
  std::deque<std::shared_ptr<ChunkRow>> kept_;
  std::vector<ShardPiece> pieces_;  ///< pieces of the row of shards that is being made
  std::int64_t rows_done_ = 0;
};

/// One value, where all of the chunk has it.
LabelCell CellOf(std::unique_ptr<std::uint8_t[]>& pixels, std::int64_t height, std::int64_t width) {
  LabelCell cell;
  const std::uint8_t first = pixels[0];
  bool is_one = true;
  for (std::int64_t y = 0; y < height && is_one; ++y) {
    const std::uint8_t* row = pixels.get() + y * kChunkSide;
    is_one = row[0] == first && RunLength(row, width) == width;
  }
  if (is_one) {
    cell.value = first;
  } else {
    cell.pixels = std::move(pixels);
  }
  return cell;
}

std::unique_ptr<std::uint8_t[]> ChunkBuffer() {
  return std::make_unique_for_overwrite<std::uint8_t[]>(
      static_cast<std::size_t>(kChunkSide * kChunkSide));
}

/// Makes rows of every level as soon as the rows of the finer level are complete.
class Pyramid {
 public:
  Pyramid(const ShardTarget& target, const ImageStoreSettings& settings,
          const std::vector<Extent>& levels, LabelShards& out)
      : lanes_{Lane(settings), Lane(settings)} {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      levels_.push_back(
          std::make_unique<LevelRows>(target, settings, static_cast<int>(i), levels[i], out));
    }
    coming_.resize(levels.size());
  }

  /// Row `index` of level 0, without pixels.
  std::shared_ptr<ChunkRow> Empty(std::int64_t index) const { return levels_[0]->Empty(index); }

  /// Fills the row, and says after each chunk how many are there. Touches nothing that AddFinest
  /// does, but the chunks that are not there yet.
  Status Paint(ChunkRow& row, const LabelChunk& finest,
               const std::function<void(std::size_t chunks)>& painted) const {
    const LevelRows& level = *levels_[0];
    std::unique_ptr<std::uint8_t[]> pixels;
    for (std::int64_t x = 0; x < level.grid().x; ++x) {
      if (pixels == nullptr) pixels = ChunkBuffer();
      PB_ASSIGN_OR_RETURN(const std::optional<std::uint8_t> value,
                          finest({0, row.index, x}, pixels.get()));
      row.cells[static_cast<std::size_t>(x)] =
          value ? LabelCell{*value, nullptr}
                : CellOf(pixels, level.HeightOf(row.index), level.WidthOf(x));
      painted(static_cast<std::size_t>(x) + 1);
    }
    return absl::OkStatus();
  }

  /// Counts and encodes a row of level 0, and makes the rows of coarser levels that it completes.
  /// `loop` shares the work, chunk by chunk.
  Status AddFinest(const std::shared_ptr<ChunkRow>& row, SharedLoop& loop) {
    LevelRows& level = *levels_[0];
    BeginAbove(0);
    const auto count = [&](std::size_t column, Lane& lane) {
      lane.encoder.Count(level.PartOf(*row, column));
      HalveInto(0, *row, column);
    };
    PB_RETURN_IF_ERROR(Encode(level, *row, loop, count));
    PB_RETURN_IF_ERROR(level.Add(row));
    return BuildAbove(0, loop);
  }

  std::int64_t rows() const { return levels_[0]->grid().y; }

  /// Pixels of level 0 so far, by value.
  std::array<std::uint64_t, 256> Counts() const {
    std::array<std::uint64_t, 256> all = lanes_[0].encoder.counts();
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += lanes_[1].encoder.counts()[i];
    return all;
  }

 private:
  /// One thread's part in the work.
  struct Lane {
    explicit Lane(const ImageStoreSettings& settings) : encoder(settings) {}

    LabelCellEncoder encoder;
    std::vector<std::uint8_t> gathered;
  };

  /// Encodes the chunks of `row`, some at a time, each right after `before` was called for it.
  Status Encode(const LevelRows& level, ChunkRow& row, SharedLoop& loop,
                const std::function<void(std::size_t column, Lane&)>& before) {
    const std::size_t columns = row.cells.size();
    row.encoded.resize(columns);
    const auto encode = [&](std::size_t item, SharedLoop::Lane number) -> Status {
      Lane& lane = lanes_[number];
      const std::size_t begin = item * kTogether, end = std::min(columns, begin + kTogether);
      for (std::size_t column = begin; column < end; ++column) {
        before(column, lane);
        PB_RETURN_IF_ERROR(lane.encoder.Encode(level.PartOf(row, column), row.encoded[column]));
      }
      return absl::OkStatus();
    };
    PB_RETURN_IF_ERROR(loop.Run((columns + kTogether - 1) / kTogether, encode));
    lanes_[0].encoder.FinishDigests(lanes_[1].encoder);
    return absl::OkStatus();
  }

  /// Makes the rows of the levels above `level` whose input is complete now.
  Status BuildAbove(std::size_t level, SharedLoop& loop) {
    if (level + 1 == levels_.size()) {
      levels_[level]->Forget(levels_[level]->size().y);
      return absl::OkStatus();
    }
    LevelRows &below = *levels_[level], &above = *levels_[level + 1];
    while (above.rows_done() < above.grid().y) {
      const std::int64_t row = above.rows_done();
      const Footprint rows(below.size().y, above.size().y);
      const std::int64_t end = rows.End(row * kChunkSide + above.HeightOf(row) - 1);
      const bool has_all = below.rows_done() * kChunkSide >= std::min(end, below.size().y);
      if (!has_all) break;
      auto coarser = std::exchange(coming_[level + 1], nullptr);
      BeginAbove(level + 1);
      const auto make = [&](std::size_t column, Lane& lane) {
        LabelCell& cell = coarser->cells[column];
        cell = Coarser(below, above, {0, row, static_cast<std::int64_t>(column)},
                       std::move(cell.pixels), lane);
        HalveInto(level + 1, *coarser, column);
      };
      PB_RETURN_IF_ERROR(Encode(above, *coarser, loop, make));
      PB_RETURN_IF_ERROR(above.Add(std::move(coarser)));
      below.Forget(rows.Begin((row + 1) * kChunkSide));
      PB_RETURN_IF_ERROR(BuildAbove(level + 1, loop));
    }
    return absl::OkStatus();
  }

  /// A row of the level above `level` takes the halves of its chunks.
  void BeginAbove(std::size_t level) {
    if (level + 1 == levels_.size() || coming_[level + 1] != nullptr) return;
    const LevelRows& above = *levels_[level + 1];
    coming_[level + 1] = above.Empty(above.rows_done());
  }

  /// Halves a chunk of `level` while the cache holds it, into its quarter of the chunk above. Two
  /// beside each other go to one chunk, and are of one item, as kTogether is even: no two threads
  /// meet there.
  void HalveInto(std::size_t level, const ChunkRow& row, std::size_t column) {
    const LabelCell& cell = row.cells[column];
    if (level + 1 == levels_.size() || cell.pixels == nullptr) return;
    const LevelRows &below = *levels_[level], &above = *levels_[level + 1];
    const auto x = static_cast<std::int64_t>(column);
    const CoarserChunk chunk(below, above, {0, row.index / 2, x / 2});
    const Box part = Intersect(
        chunk.box,
        Box2D(row.index * kHalf, x * kHalf, below.HeightOf(row.index) / 2, below.WidthOf(x) / 2));
    if (part.Empty() || !chunk.IsHalved()) return;
    LabelCell& coarser = coming_[level + 1]->cells[column / 2];
    if (coarser.pixels == nullptr) coarser.pixels = ChunkBuffer();
    const Box fine = Box2D(2 * part.y, 2 * part.x, 2 * part.height, 2 * part.width);
    std::uint8_t* to =
        coarser.pixels.get() + (part.y - chunk.box.y) * kChunkSide + (part.x - chunk.box.x);
    DownsampleByMode({cell.pixels.get(), fine, kChunkSide}, chunk.covers, {to, part, kChunkSide});
  }

  /// A chunk of a level, and the pixels below that it covers.
  struct CoarserChunk {
    CoarserChunk(const LevelRows& below, const LevelRows& above, const Point& at)
        : covers{{below.size().y, above.size().y}, {below.size().x, above.size().x}},
          box(Box2D(at.y * kChunkSide, at.x * kChunkSide, above.HeightOf(at.y),
                    above.WidthOf(at.x))) {
      const std::int64_t y = covers.y.Begin(box.y), x = covers.x.Begin(box.x);
      covered = Box2D(y, x, covers.y.End(box.y + box.height - 1) - y,
                      covers.x.End(box.x + box.width - 1) - x);
    }
    /// Each pixel covers two by two.
    bool IsHalved() const {
      return covers.y.factor() == 2 && covers.x.factor() == 2 && covered.height == 2 * box.height &&
             covered.width == 2 * box.width;
    }

    Footprints covers;
    Box box, covered;
  };

  /// Chunk `at` of `above`. `halves` are those of the chunks below that have pixels, or null.
  static LabelCell Coarser(const LevelRows& below, const LevelRows& above, const Point& at,
                           std::unique_ptr<std::uint8_t[]> halves, Lane& lane) {
    const CoarserChunk chunk(below, above, at);
    if (const auto value = OneValueOf(below, chunk.covered)) return {*value, nullptr};
    auto pixels = halves != nullptr ? std::move(halves) : ChunkBuffer();
    const CoarsePixels to{pixels.get(), chunk.box, kChunkSide};
    if (chunk.IsHalved()) {
      FillConstants(below, to);
    } else {
      Gather(below, chunk.covered, lane.gathered);
      DownsampleByMode({lane.gathered.data(), chunk.covered}, chunk.covers, to);
    }
    return CellOf(pixels, chunk.box.height, chunk.box.width);
  }

  static const LabelCell& CellAt(const LevelRows& level, std::int64_t y, std::int64_t x) {
    const auto row = static_cast<std::size_t>(y - level.kept().front()->index);
    return level.kept()[row]->cells[static_cast<std::size_t>(x)];
  }

  /// The cells that `box` of a level lies in.
  static Box CellsUnder(const Box& box) {
    const std::int64_t y = box.y / kChunkSide, x = box.x / kChunkSide;
    return Box2D(y, x, (box.y + box.height - 1) / kChunkSide + 1 - y,
                 (box.x + box.width - 1) / kChunkSide + 1 - x);
  }

  /// The value of all cells that `box` lies in, if they have one.
  static std::optional<std::uint8_t> OneValueOf(const LevelRows& level, const Box& box) {
    const Box cells = CellsUnder(box);
    const std::uint8_t value = CellAt(level, cells.y, cells.x).value;
    for (std::int64_t y = cells.y; y < cells.y + cells.height; ++y) {
      for (std::int64_t x = cells.x; x < cells.x + cells.width; ++x) {
        const LabelCell& cell = CellAt(level, y, x);
        if (cell.pixels != nullptr || cell.value != value) return std::nullopt;
      }
    }
    return value;
  }

  /// The quarters of a chunk that are half of a chunk of one value.
  static void FillConstants(const LevelRows& below, const CoarsePixels& chunk) {
    for (std::int64_t y = 0; y < chunk.box.height; y += kHalf) {
      for (std::int64_t x = 0; x < chunk.box.width; x += kHalf) {
        const LabelCell& cell =
            CellAt(below, 2 * (chunk.box.y + y) / kChunkSide, 2 * (chunk.box.x + x) / kChunkSide);
        if (cell.pixels != nullptr) continue;
        const auto width = static_cast<std::size_t>(std::min(kHalf, chunk.box.width - x));
        for (std::int64_t row = y; row < std::min(y + kHalf, chunk.box.height); ++row) {
          std::memset(chunk.data + row * kChunkSide + x, cell.value, width);
        }
      }
    }
  }

  /// The pixels of `box` into `out`.
  static void Gather(const LevelRows& level, const Box& box, std::vector<std::uint8_t>& out) {
    out.resize(static_cast<std::size_t>(box.height * box.width));
    const Box cells = CellsUnder(box);
    for (std::int64_t y = cells.y; y < cells.y + cells.height; ++y) {
      for (std::int64_t x = cells.x; x < cells.x + cells.width; ++x) {
        Copy(CellAt(level, y, x), {0, y, x}, {out.data(), box, box.width});
      }
    }
  }

  /// The pixels of the chunk at `at` that `to` has room for.
  static void Copy(const LabelCell& cell, const Point& at, const CoarsePixels& to) {
    const Box part =
        Intersect(to.box, Box2D(at.y * kChunkSide, at.x * kChunkSide, kChunkSide, kChunkSide));
    for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
      std::uint8_t* out = to.data + (y - to.box.y) * to.row_bytes + (part.x - to.box.x);
      if (cell.pixels == nullptr) {
        std::memset(out, cell.value, static_cast<std::size_t>(part.width));
      } else {
        std::memcpy(
            out,
            cell.pixels.get() + (y - at.y * kChunkSide) * kChunkSide + (part.x - at.x * kChunkSide),
            static_cast<std::size_t>(part.width));
      }
    }
  }

  std::array<Lane, SharedLoop::kLanes> lanes_;
  std::vector<std::unique_ptr<LevelRows>> levels_;
  /// The row of each level that the chunks below are halved into.
  std::vector<std::shared_ptr<ChunkRow>> coming_;
};

/// Encodes rows on a thread of its own, one at a time, while they are painted: chunks are encoded
/// as long as the cache holds them, by the caller's thread, too, where the other falls behind. If
/// no thread can be started, the next call does the work.
class RowEncoding {
 public:
  explicit RowEncoding(Pyramid& pyramid) : pyramid_(pyramid) {}
  ~RowEncoding() {
    if (loop_ != nullptr) loop_->Cancel();
  }
  RowEncoding(const RowEncoding&) = delete;
  RowEncoding& operator=(const RowEncoding&) = delete;

  /// Finishes the row before, and begins `row`, whose chunks come from now on. After an error of
  /// the row before, returns it.
  Status Begin(const std::shared_ptr<ChunkRow>& row) {
    PB_RETURN_IF_ERROR(Finish());
    chunks_ = row->cells.size();
    loop_ = std::make_unique<SharedLoop>();
    loop_->Allow(0);
    auto add = [this, row] {
      const SharedLoop::AtExit end{*loop_};
      return pyramid_.AddFinest(row, *loop_);
    };
    begun_ = std::async(std::launch::async | std::launch::deferred, Metered(std::move(add)));
    return absl::OkStatus();
  }
  /// The first `chunks` of the row have their pixels.
  void Painted(std::size_t chunks) {
    loop_->Allow(chunks < chunks_ ? chunks / kTogether : chunks_);
    if (loop_->Waiting() * kTogether > kChunksAhead) loop_->HelpOnce();
  }
  /// Helps with the work in progress until it is done.
  Status Finish() {
    if (!begun_.valid()) return absl::OkStatus();
    const bool is_deferred =
        begun_.wait_for(std::chrono::seconds(0)) == std::future_status::deferred;
    if (!is_deferred) loop_->Help();
    return begun_.get();
  }

 private:
  /// Chunks that wait to be encoded while the next is painted: larger means that the cache holds
  /// fewer of them, smaller that the threads wait for each other.
  static constexpr std::size_t kChunksAhead = 8;

  Pyramid& pyramid_;
  std::size_t chunks_ = 0;            ///< chunks of the row
  std::unique_ptr<SharedLoop> loop_;  ///< one a row
  std::future<Status> begun_;         ///< its destructor waits for the task
};

Status CheckLevels(const std::vector<Extent>& levels) {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].Empty() || levels[i].z != 1 || (i > 0 && !levels[i - 1].Covers(levels[i]))) {
      return InvalidArgument("write label image: level ", i, " of ", levels[i].ToString(),
                             " pixels");
    }
  }
  return levels.empty() ? InvalidArgument("write label image: no level") : absl::OkStatus();
}

}  // namespace

ImageStoreSettings LabelSettings() {
  ImageStoreSettings s;
  s.channels = 1;
  s.chunk = Flat(kChunkSide, kChunkSide);
  s.shard = Flat(kShardSide, kShardSide);
  s.codec_level = kCodecLevel;
  s.fill_value = kIgnoreLabel;
  return s;
}

ImageStoreSettings VolumeLabelSettings() {
  ImageStoreSettings s = VolumeSettings(DType::kUint8);
  s.codec_level = kCodecLevel;
  s.fill_value = kIgnoreLabel;
  return s;
}

StatusOr<LabelShards> WriteLabelShards(const Folders& allowed, const std::string& folder,
                                       const std::vector<Extent>& levels, const LabelChunk& finest,
                                       const AfterLabelRow& after_row,
                                       const std::function<void()>& after_shard) {
  PB_RETURN_IF_ERROR(CheckLevels(levels));
  const ImageStoreSettings settings = LabelSettings();
  LabelShards out;
  Pyramid pyramid({allowed, folder, after_shard}, settings, levels, out);
  RowEncoding encoding(pyramid);
  for (std::int64_t index = 0; index < pyramid.rows(); ++index) {
    const std::shared_ptr<ChunkRow> row = pyramid.Empty(index);
    PB_RETURN_IF_ERROR(encoding.Begin(row));
    PB_RETURN_IF_ERROR(
        pyramid.Paint(*row, finest, [&](std::size_t chunks) { encoding.Painted(chunks); }));
    PB_RETURN_IF_ERROR(after_row(index, row->cells));
  }
  PB_RETURN_IF_ERROR(encoding.Finish());
  out.pixels = pyramid.Counts();
  return out;
}

StatusOr<std::array<std::uint64_t, 256>> CountLabels(const Extent& level, const LabelChunk& finest,
                                                     const std::function<Status()>& after_row) {
  PB_RETURN_IF_ERROR(CheckLevels({level}));
  std::array<std::uint64_t, 256> counts{};
  const Extent grid = ChunkGridOf(LabelSettings(), level);
  LabelCell cell;
  for (std::int64_t y = 0; y < grid.y; ++y) {
    for (std::int64_t x = 0; x < grid.x; ++x) {
      if (cell.pixels == nullptr) cell.pixels = ChunkBuffer();
      PB_ASSIGN_OR_RETURN(const std::optional<std::uint8_t> value,
                          finest({0, y, x}, cell.pixels.get()));
      const std::int64_t height = std::min(kChunkSide, level.y - y * kChunkSide);
      const std::int64_t width = std::min(kChunkSide, level.x - x * kChunkSide);
      const LabelCell constant{value.value_or(0), nullptr};
      Tally({value ? &constant : &cell, height, width}, kChunkSide, counts);
    }
    PB_RETURN_IF_ERROR(after_row());
  }
  return counts;
}

}  // namespace patchbay::zarr

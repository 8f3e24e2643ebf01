#include "runtime/format/zarr/label_writer.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <span>

#include "runtime/core/runs.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/shard_encoder.h"
#include "runtime/os/file.h"
#include "runtime/os/work_meter.h"

namespace patchbay::zarr {
namespace {

constexpr std::int64_t kChunkSide = 512;
constexpr std::int64_t kShardSide = 4096;
constexpr int kCodecLevel = 1;

/// A row of chunks of one level.
struct ChunkRow {
  std::int64_t index = 0;
  std::vector<LabelCell> cells;
  std::vector<Digest> digests;  ///< digests of the chunks that have pixels, by column
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
        encoder_(settings),
        row_hasher_(settings),
        constant_hasher_(settings),
        out_(out) {}

  const Extent& size() const { return size_; }
  const Extent& grid() const { return grid_; }
  std::int64_t rows_done() const { return rows_done_; }
  const std::deque<ChunkRow>& kept() const { return kept_; }

  /// Chunks in the part of the level that chunk row `row` covers, clipped.
  std::int64_t HeightOf(std::int64_t row) const {
    return std::min(settings_.chunk.y, size_.y - row * settings_.chunk.y);
  }
  std::int64_t WidthOf(std::int64_t column) const {
    return std::min(settings_.chunk.x, size_.x - column * settings_.chunk.x);
  }

  /// Hashes each chunk that has pixels. Touches nothing that Add does.
  void Hash(ChunkRow& row) {
    std::vector<ConstTensorView> views;
    std::vector<std::size_t> places;
    for (std::size_t x = 0; x < row.cells.size(); ++x) {
      if (row.cells[x].pixels == nullptr) continue;
      views.push_back(ViewOf(row.cells[x].pixels.get(), HeightOf(row.index),
                             WidthOf(static_cast<std::int64_t>(x))));
      places.push_back(x);
    }
    const std::vector<Digest> found =
        row_hasher_.HashEach(views, std::vector<bool>(views.size(), false));
    row.digests.assign(row.cells.size(), {});
    for (std::size_t i = 0; i < places.size(); ++i) row.digests[places[i]] = found[i];
  }

  /// Encodes a row whose digests are known.
  Status Add(ChunkRow row) {
    const Extent per_shard = settings_.ChunksPerShard();
    const std::int64_t shards = (grid_.x + per_shard.x - 1) / per_shard.x;
    if (row.index % per_shard.y == 0) Begin(row.index, shards);
    for (std::int64_t x = 0; x < grid_.x; ++x) {
      ShardPiece& piece = pieces_[static_cast<std::size_t>(x / per_shard.x)];
      PB_RETURN_IF_ERROR(Encode(row, x, piece));
    }
    const bool is_last = row.index + 1 == grid_.y;
    if (is_last || (row.index + 1) % per_shard.y == 0) PB_RETURN_IF_ERROR(WriteShards());
    ++rows_done_;
    kept_.push_back(std::move(row));
    return absl::OkStatus();
  }

  /// Forgets the rows that end above pixel row `y`.
  void Forget(std::int64_t y) {
    while (!kept_.empty() && (kept_.front().index + 1) * settings_.chunk.y <= y) kept_.pop_front();
  }

 private:
  /// One value as a chunk of some shape.
  struct Constant {
    std::vector<std::byte> bytes;
    Digest pixels;
  };

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

  /// The chunk's pixels padded with background to a whole one, encoded, with its checksum.
  Status EncodeRaw(const std::uint8_t* pixels, std::int64_t height, std::int64_t width,
                   std::vector<std::byte>& to) {
    const auto size = static_cast<std::size_t>(kChunkSide * kChunkSide);
    std::span<const std::byte> whole(reinterpret_cast<const std::byte*>(pixels), size);
    if (height < kChunkSide || width < kChunkSide) {
      raw_.assign(size, std::byte{kIgnoreLabel});
      for (std::int64_t y = 0; y < height; ++y) {
        std::memcpy(raw_.data() + y * kChunkSide, pixels + y * kChunkSide,
                    static_cast<std::size_t>(width));
      }
      whole = raw_;
    }
    const std::size_t begin = to.size();
    PB_RETURN_IF_ERROR(encoder_.Append(whole, to));
    const std::uint32_t crc = Crc32c(std::span(to).subspan(begin));
    const auto tail = std::as_bytes(std::span(&crc, 1));
    to.insert(to.end(), tail.begin(), tail.end());
    return absl::OkStatus();
  }

  ConstTensorView ViewOf(const std::uint8_t* pixels, std::int64_t height, std::int64_t width) {
    ConstTensorView view;
    view.data = reinterpret_cast<const std::byte*>(pixels);
    view.rank = 4;
    view.shape = {1, height, width, 1};
    view.stride_bytes = {kChunkSide * kChunkSide, kChunkSide, 1, 1};
    return view;
  }

  StatusOr<const Constant*> ConstantOf(std::uint8_t value, std::int64_t height,
                                       std::int64_t width) {
    const std::array<std::int64_t, 3> key = {value, height, width};
    const auto known = constants_.find(key);
    if (known != constants_.end()) return &known->second;
    const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kChunkSide * kChunkSide),
                                           value);
    Constant constant;
    constant.pixels = constant_hasher_.Hash(ViewOf(pixels.data(), height, width), false);
    if (value != kIgnoreLabel) {
      PB_RETURN_IF_ERROR(EncodeRaw(pixels.data(), height, width, constant.bytes));
    }
    return &constants_.emplace(key, std::move(constant)).first->second;
  }

  /// Chunk `x` of the row.
  Status Encode(const ChunkRow& row, std::int64_t x, ShardPiece& piece) {
    const LabelCell& cell = row.cells[static_cast<std::size_t>(x)];
    const std::int64_t height = HeightOf(row.index), width = WidthOf(x);
    EncodedChunk chunk;
    chunk.offset = piece.bytes.size();
    chunk.pixels = row.digests[static_cast<std::size_t>(x)];
    if (cell.pixels == nullptr) {
      PB_ASSIGN_OR_RETURN(const Constant* constant, ConstantOf(cell.value, height, width));
      piece.bytes.insert(piece.bytes.end(), constant->bytes.begin(), constant->bytes.end());
      chunk.pixels = constant->pixels;
    } else {
      PB_RETURN_IF_ERROR(EncodeRaw(cell.pixels.get(), height, width, piece.bytes));
    }
    chunk.size_bytes = piece.bytes.size() - chunk.offset;
    piece.chunks.push_back(chunk);
    return absl::OkStatus();
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
  ChunkEncoder encoder_;
  PixelHasher row_hasher_, constant_hasher_;  ///< used by Hash and by Add
  LabelShards& out_;
  std::deque<ChunkRow> kept_;
  std::vector<ShardPiece> pieces_;  ///< pieces of the row of shards that is being made
  std::map<std::array<std::int64_t, 3>, Constant> constants_;  ///< by value, height, width
  std::vector<std::byte> raw_;
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

void Tally(const LabelCell& cell, std::int64_t height, std::int64_t width,
           std::array<std::uint64_t, 256>& out) {
  if (cell.pixels == nullptr) {
    out[cell.value] += static_cast<std::uint64_t>(height * width);
    return;
  }
  for (std::int64_t y = 0; y < height; ++y) {
    CountValues(cell.pixels.get() + y * kChunkSide, width, out);
  }
}

/// Makes rows of every level as soon as the rows of the finer level are complete.
class Pyramid {
 public:
  Pyramid(const ShardTarget& target, const ImageStoreSettings& settings,
          const std::vector<Extent>& levels, LabelShards& out)
      : out_(out) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      levels_.push_back(
          std::make_unique<LevelRows>(target, settings, static_cast<int>(i), levels[i], out));
    }
  }

  /// Row `index` of level 0, its pixels counted and hashed: about half of the work of a row, so
  /// that neither thread waits long. Touches nothing that AddFinest does.
  StatusOr<ChunkRow> MakeFinest(std::int64_t index, const LabelChunk& finest) {
    LevelRows& level = *levels_[0];
    ChunkRow row{index, {}, {}};
    std::unique_ptr<std::uint8_t[]> pixels;
    for (std::int64_t x = 0; x < level.grid().x; ++x) {
      if (pixels == nullptr) pixels = ChunkBuffer();
      PB_ASSIGN_OR_RETURN(const std::optional<std::uint8_t> value,
                          finest({0, index, x}, pixels.get()));
      const std::int64_t height = level.HeightOf(index), width = level.WidthOf(x);
      row.cells.push_back(value ? LabelCell{*value, nullptr} : CellOf(pixels, height, width));
      Tally(row.cells.back(), height, width, out_.pixels);
    }
    level.Hash(row);
    return row;
  }

  /// Encodes a row of level 0, and the rows of coarser levels that it completes.
  Status AddFinest(ChunkRow row) {
    PB_RETURN_IF_ERROR(levels_[0]->Add(std::move(row)));
    return BuildAbove(0);
  }

  std::int64_t rows() const { return levels_[0]->grid().y; }

 private:
  /// Makes the rows of the levels above `level` whose input is complete now.
  Status BuildAbove(std::size_t level) {
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
      ChunkRow coarser = Coarser(below, above, row);
      above.Hash(coarser);
      PB_RETURN_IF_ERROR(above.Add(std::move(coarser)));
      below.Forget(rows.Begin((row + 1) * kChunkSide));
      PB_RETURN_IF_ERROR(BuildAbove(level + 1));
    }
    return absl::OkStatus();
  }

  ChunkRow Coarser(const LevelRows& below, const LevelRows& above, std::int64_t index) {
    const Footprints covers{{below.size().y, above.size().y}, {below.size().x, above.size().x}};
    ChunkRow out{index, {}, {}};
    const std::int64_t top = index * kChunkSide, height = above.HeightOf(index);
    for (std::int64_t x = 0; x < above.grid().x; ++x) {
      const std::int64_t left = x * kChunkSide, width = above.WidthOf(x);
      const Box box = Box2D(top, left, height, width);
      const std::int64_t y0 = covers.y.Begin(top), x0 = covers.x.Begin(left);
      const Box covered =
          Box2D(y0, x0, covers.y.End(top + height - 1) - y0, covers.x.End(left + width - 1) - x0);
      if (const auto value = OneValueOf(below, covered)) {
        out.cells.push_back({*value, nullptr});
        continue;
      }
      auto pixels = ChunkBuffer();
      const bool is_halved = covers.y.factor() == 2 && covers.x.factor() == 2 &&
                             covered.height == 2 * height && covered.width == 2 * width;
      if (is_halved) {
        Halve(below, covers, {pixels.get(), box, kChunkSide});
      } else {
        Gather(below, covered);
        DownsampleByMode({gathered_.data(), covered}, covers, {pixels.get(), box, kChunkSide});
      }
      out.cells.push_back(CellOf(pixels, height, width));
    }
    return out;
  }

  static const LabelCell& CellAt(const LevelRows& level, std::int64_t y, std::int64_t x) {
    const auto row = static_cast<std::size_t>(y - level.kept().front().index);
    return level.kept()[row].cells[static_cast<std::size_t>(x)];
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

  /// A chunk from the up to four that it is half of, each from where it lies.
  static void Halve(const LevelRows& below, const Footprints& covers, const CoarsePixels& chunk) {
    constexpr std::int64_t kHalf = kChunkSide / 2;
    for (std::int64_t y = 0; y < chunk.box.height; y += kHalf) {
      for (std::int64_t x = 0; x < chunk.box.width; x += kHalf) {
        const Box part =
            Box2D(chunk.box.y + y, chunk.box.x + x, std::min(kHalf, chunk.box.height - y),
                  std::min(kHalf, chunk.box.width - x));
        std::uint8_t* to = chunk.data + y * kChunkSide + x;
        const LabelCell& cell = CellAt(below, 2 * part.y / kChunkSide, 2 * part.x / kChunkSide);
        if (cell.pixels != nullptr) {
          const Box fine = Box2D(2 * part.y, 2 * part.x, 2 * part.height, 2 * part.width);
          DownsampleByMode({cell.pixels.get(), fine, kChunkSide}, covers, {to, part, kChunkSide});
          continue;
        }
        for (std::int64_t row = 0; row < part.height; ++row) {
          std::memset(to + row * kChunkSide, cell.value, static_cast<std::size_t>(part.width));
        }
      }
    }
  }

  /// The pixels of `box` into gathered_.
  void Gather(const LevelRows& level, const Box& box) {
    gathered_.resize(static_cast<std::size_t>(box.height * box.width));
    const Box cells = CellsUnder(box);
    for (std::int64_t y = cells.y; y < cells.y + cells.height; ++y) {
      for (std::int64_t x = cells.x; x < cells.x + cells.width; ++x) {
        Copy(CellAt(level, y, x), {0, y, x}, box);
      }
    }
  }

  void Copy(const LabelCell& cell, const Point& at, const Box& box) {
    const Box part =
        Intersect(box, Box2D(at.y * kChunkSide, at.x * kChunkSide, kChunkSide, kChunkSide));
    for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
      std::uint8_t* to = gathered_.data() + (y - box.y) * box.width + (part.x - box.x);
      if (cell.pixels == nullptr) {
        std::memset(to, cell.value, static_cast<std::size_t>(part.width));
      } else {
        std::memcpy(
            to,
            cell.pixels.get() + (y - at.y * kChunkSide) * kChunkSide + (part.x - at.x * kChunkSide),
            static_cast<std::size_t>(part.width));
      }
    }
  }

  LabelShards& out_;
  std::vector<std::unique_ptr<LevelRows>> levels_;
  std::vector<std::uint8_t> gathered_;
};

/// Encodes rows on a thread of its own, one at a time, in their order. If no thread can be started,
/// the next call does the work.
class RowEncoding {
 public:
  explicit RowEncoding(Pyramid& pyramid) : pyramid_(pyramid) {}

  /// Waits for the row before, and begins `row`. After an error of the row before, returns it and
  /// drops `row`.
  Status Begin(ChunkRow row) {
    PB_RETURN_IF_ERROR(Finish());
    auto add = [this, row = std::move(row)]() mutable {
      return pyramid_.AddFinest(std::move(row));
    };
    begun_ = std::async(std::launch::async | std::launch::deferred, Metered(std::move(add)));
    return absl::OkStatus();
  }
  /// Waits for the work in progress.
  Status Finish() { return begun_.valid() ? begun_.get() : absl::OkStatus(); }

 private:
  Pyramid& pyramid_;
  std::future<Status> begun_;  ///< its destructor waits for the task
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
    PB_ASSIGN_OR_RETURN(ChunkRow row, pyramid.MakeFinest(index, finest));
    PB_RETURN_IF_ERROR(after_row(index, row.cells));
    PB_RETURN_IF_ERROR(encoding.Begin(std::move(row)));
  }
  PB_RETURN_IF_ERROR(encoding.Finish());
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
      if (value) {
        Tally({*value, nullptr}, height, width, counts);
      } else {
        Tally(cell, height, width, counts);
      }
    }
    PB_RETURN_IF_ERROR(after_row());
  }
  return counts;
}

}  // namespace patchbay::zarr

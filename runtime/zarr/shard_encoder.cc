#include "runtime/zarr/shard_encoder.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/zarr/downsample.h"

namespace patchbay::zarr {
namespace {

constexpr int kCoarserLevelsMax = 3;
/// A shard of more pixels has no coarser levels beside it: they would take a third of its memory.
constexpr std::int64_t kMaxShardBytes = std::int64_t{512} << 20;
/// What encoded pixels are expected to take at most, so that the shard's bytes seldom move.
constexpr std::size_t kLikelyRatio = 2;

std::int64_t PixelBytes(const ImageStoreSettings& settings) {
  return settings.channels * static_cast<std::int64_t>(SizeOf(settings.dtype));
}

void PutIndexEntry(std::vector<std::byte>& index, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t entry[2] = {offset, size};
  const auto bytes = std::as_bytes(std::span(entry));
  index.insert(index.end(), bytes.begin(), bytes.end());
}

void PutChecksum(std::vector<std::byte>& bytes, std::size_t from) {
  const std::uint32_t crc = Crc32c(std::span(bytes).subspan(from));
  const auto tail = std::as_bytes(std::span(&crc, 1));
  bytes.insert(bytes.end(), tail.begin(), tail.end());
}

/// The part of a level's chunk grid that a shard covers, in chunks.
ShardPiece ChunksOf(const ImageStoreSettings& settings, const LevelSize& level,
                    const ShardPlace& place) {
  const std::int64_t per_side = settings.shard_px / settings.chunk_px;
  const LevelSize grid = ChunkGridOf(settings, level);
  ShardPiece piece;
  piece.level = place.level;
  piece.row = place.row * per_side;
  piece.column = place.column * per_side;
  piece.rows = std::min(per_side, grid.height - piece.row);
  piece.columns = std::min(per_side, grid.width - piece.column);
  return piece;
}

Status CheckPlaceIn(const ImageStoreSettings& settings, const LevelSize& level,
                    const ShardPlace& place) {
  const LevelSize shards = ShardGridOf(settings, level);
  if (place.level >= 0 && place.row >= 0 && place.row < shards.height && place.column >= 0 &&
      place.column < shards.width) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("encode shard: ", ShardFileName(place), ": outside the level"));
}

/// The shard's file: its chunks, then the index.
EncodedShard Finish(const ImageStoreSettings& settings, const ShardPlace& place, ShardPiece piece) {
  EncodedShard out;
  out.record.place = place;
  for (const EncodedChunk& chunk : piece.chunks) out.record.chunk_pixels.push_back(chunk.pixels);
  out.bytes = std::move(piece.bytes);
  if (out.bytes.empty()) return out;
  const std::int64_t per_side = settings.shard_px / settings.chunk_px;
  std::vector<std::byte> index;
  for (std::int64_t i = 0; i < per_side * per_side; ++i) {
    const std::int64_t row = i / per_side, column = i % per_side;
    const EncodedChunk* chunk = nullptr;
    if (row < piece.rows && column < piece.columns) {
      chunk = &piece.chunks[static_cast<std::size_t>(row * piece.columns + column)];
    }
    if (chunk == nullptr || chunk->size_bytes == 0) {
      PutIndexEntry(index, ~std::uint64_t{0}, ~std::uint64_t{0});
    } else {
      PutIndexEntry(index, chunk->offset, chunk->size_bytes);
    }
  }
  const std::size_t begin = out.bytes.size();
  out.bytes.insert(out.bytes.end(), index.begin(), index.end());
  PutChecksum(out.bytes, begin);
  out.record.size_bytes = out.bytes.size();
  out.record.digest = Sha256Of(std::span<const std::byte>(out.bytes));
  return out;
}

/// Rows [begin, begin + height) and columns likewise of an interleaved view.
ConstTensorView Part(const ConstTensorView& view, const LevelSize& begin, const LevelSize& size) {
  ConstTensorView part = view;
  part.data += begin.height * view.stride_bytes[0] + begin.width * view.stride_bytes[1];
  part.shape[0] = size.height;
  part.shape[1] = size.width;
  return part;
}

}  // namespace

int CoarserLevels(const ImageStoreSettings& settings) {
  int levels = 0;
  const bool is_large =
      settings.shard_px * settings.shard_px > kMaxShardBytes / PixelBytes(settings);
  if (is_large || settings.chunk_px % 2 != 0) return 0;
  while (levels < kCoarserLevelsMax &&
         settings.shard_px % (settings.chunk_px << (levels + 1)) == 0) {
    ++levels;
  }
  return levels;
}

ShardEncoder::ShardEncoder(const ImageStoreSettings& settings, std::vector<LevelSize> levels,
                           const ShardPlace& place)
    : settings_(settings),
      levels_(std::move(levels)),
      place_(place),
      encoder_(settings),
      hasher_(settings) {}

Status ShardEncoder::CheckPlace() const {
  PB_RETURN_IF_ERROR(Validate(settings_));
  if (levels_.empty() || levels_.size() - 1 > static_cast<std::size_t>(CoarserLevels(settings_))) {
    return absl::InvalidArgumentError(StrCat("encode shard: ", levels_.size(), " levels at once"));
  }
  for (std::size_t i = 1; i < levels_.size(); ++i) {
    if (levels_[i] != LevelSize{(levels_[i - 1].height + 1) / 2, (levels_[i - 1].width + 1) / 2}) {
      return absl::InvalidArgumentError("encode shard: a level is not half of the one before");
    }
  }
  return CheckPlaceIn(settings_, levels_[0], place_);
}

ShardEncoder::Area ShardEncoder::MakeArea(std::size_t coarser) const {
  const std::int64_t side = settings_.shard_px >> coarser;
  const LevelSize& level = levels_[coarser];
  const std::int64_t height = std::min(side, level.height - place_.row * side);
  const std::int64_t width = std::min(side, level.width - place_.column * side);
  Area area;
  area.bytes = std::make_unique_for_overwrite<std::byte[]>(
      static_cast<std::size_t>(height * width * PixelBytes(settings_)));
  area.view = ContiguousView<3>(area.bytes.get(), settings_.dtype,
                                {height, width, static_cast<std::int64_t>(settings_.channels)});
  return area;
}

/// The views of the chunks of `pixels`, row-major, and which of them are background.
ShardEncoder::ChunkViews ShardEncoder::Cut(const ConstTensorView& pixels) const {
  const std::int64_t side = settings_.chunk_px, pixel = PixelBytes(settings_);
  ChunkViews out;
  for (std::int64_t y = 0; y < pixels.shape[0]; y += side) {
    for (std::int64_t x = 0; x < pixels.shape[1]; x += side) {
      const LevelSize size{std::min(side, pixels.shape[0] - y),
                           std::min(side, pixels.shape[1] - x)};
      const ConstTensorView view = Part(pixels, {y, x}, size);
      bool is_fill = true;
      for (std::int64_t row = 0; is_fill && row < size.height; ++row) {
        is_fill = std::memcmp(view.data + row * view.stride_bytes[0], fill_row_.data(),
                              static_cast<std::size_t>(size.width * pixel)) == 0;
      }
      out.views.push_back(view);
      out.corners.push_back({y, x});
      out.is_fill.push_back(is_fill);
    }
  }
  return out;
}

/// A chunk's pixels into `raw_`, the rest of it background, and averaged into `half`, where that is
/// a view: row by row, so that both find them in the nearest cache.
Status ShardEncoder::CopyAndHalve(const ConstTensorView& chunk, const TensorView& half) {
  const std::size_t row_bytes = fill_row_.size();
  const auto own = static_cast<std::size_t>(chunk.shape[1] * PixelBytes(settings_));
  for (std::int64_t y = 0; y < settings_.chunk_px; ++y) {
    std::byte* to = raw_.data() + static_cast<std::size_t>(y) * row_bytes;
    const std::size_t take = y < chunk.shape[0] ? own : 0;
    if (take > 0) std::memcpy(to, chunk.data + y * chunk.stride_bytes[0], take);
    std::memcpy(to + take, fill_row_.data() + take, row_bytes - take);
    const bool is_pair_done = y % 2 == 1 || y + 1 == chunk.shape[0];
    if (half.data == nullptr || y >= chunk.shape[0] || !is_pair_done) continue;
    const ConstTensorView pair =
        Part(chunk, {y / 2 * 2, 0},
             {std::min<std::int64_t>(2, chunk.shape[0] - y / 2 * 2), chunk.shape[1]});
    TensorView row = half;
    row.data += y / 2 * half.stride_bytes[0];
    row.shape[0] = 1;
    PB_RETURN_IF_ERROR(DownsampleByTwo(pair, row));
  }
  return absl::OkStatus();
}

Status ShardEncoder::Append(const ConstTensorView& pixels, const TensorView& half,
                            ShardPiece& piece) {
  const ChunkViews chunks = Cut(pixels);
  const std::vector<Digest> digests = hasher_.HashEach(chunks.views, chunks.is_fill);
  for (std::size_t i = 0; i < chunks.views.size(); ++i) {
    TensorView part = half;
    if (half.data != nullptr) {
      part.data += chunks.corners[i].height / 2 * half.stride_bytes[0] +
                   chunks.corners[i].width / 2 * half.stride_bytes[1];
      part.shape[0] = (chunks.views[i].shape[0] + 1) / 2;
      part.shape[1] = (chunks.views[i].shape[1] + 1) / 2;
    }
    PB_RETURN_IF_ERROR(CopyAndHalve(chunks.views[i], part));
    EncodedChunk chunk;
    chunk.pixels = digests[i];
    chunk.offset = piece.bytes.size();
    if (!chunks.is_fill[i]) {
      PB_RETURN_IF_ERROR(encoder_.Append(raw_, piece.bytes));
      PutChecksum(piece.bytes, chunk.offset);
      chunk.size_bytes = piece.bytes.size() - chunk.offset;
    }
    piece.chunks.push_back(chunk);
    PB_RETURN_IF_ERROR(after_chunk_());
  }
  return absl::OkStatus();
}

StatusOr<EncodedShard> ShardEncoder::Encode(const ShardRows& rows) {
  PB_RETURN_IF_ERROR(CheckPlace());
  const std::size_t row_bytes =
      static_cast<std::size_t>(settings_.chunk_px * PixelBytes(settings_));
  raw_.resize(row_bytes * static_cast<std::size_t>(settings_.chunk_px));
  fill_row_.resize(row_bytes);
  const std::size_t element = SizeOf(settings_.dtype);
  for (std::size_t i = 0; i < row_bytes; i += element) {
    std::memcpy(fill_row_.data() + i, &settings_.fill_value, element);
  }
  for (std::size_t i = 1; i < levels_.size(); ++i) areas_.push_back(MakeArea(i));
  ShardPiece piece = ChunksOf(settings_, levels_[0], place_);
  const std::int64_t height =
      std::min(settings_.shard_px, levels_[0].height - place_.row * settings_.shard_px);
  piece.bytes.reserve(row_bytes * static_cast<std::size_t>(height * piece.columns) / kLikelyRatio);
  for (std::int64_t y = 0; y < height;) {
    PB_ASSIGN_OR_RETURN(const ConstTensorView band, rows(piece.row + y / settings_.chunk_px));
    const bool is_whole = y + band.shape[0] == height || band.shape[0] % settings_.chunk_px == 0;
    if (band.shape[0] <= 0 || y + band.shape[0] > height || !is_whole) {
      return absl::InternalError("encode shard: rows that are no whole chunks");
    }
    TensorView half;
    if (!areas_.empty()) {
      half = areas_[0].view;
      half.data += y / 2 * half.stride_bytes[0];
    }
    PB_RETURN_IF_ERROR(Append(band, half, piece));
    y += band.shape[0];
  }
  return Finish(settings_, place_, std::move(piece));
}

StatusOr<std::vector<ShardPiece>> ShardEncoder::EncodeCoarser() {
  std::vector<ShardPiece> pieces;
  for (std::size_t i = 0; i < areas_.size(); ++i) {
    const TensorView& view = areas_[i].view;
    const std::int64_t first = (settings_.shard_px >> (i + 1)) / settings_.chunk_px;
    ShardPiece piece;
    piece.level = place_.level + static_cast<int>(i) + 1;
    piece.row = place_.row * first;
    piece.column = place_.column * first;
    piece.rows = (view.shape[0] + settings_.chunk_px - 1) / settings_.chunk_px;
    piece.columns = (view.shape[1] + settings_.chunk_px - 1) / settings_.chunk_px;
    const TensorView half = i + 1 < areas_.size() ? areas_[i + 1].view : TensorView{};
    PB_RETURN_IF_ERROR(Append(view, half, piece));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

StatusOr<EncodedShard> AssembleShard(const ImageStoreSettings& settings, const LevelSize& level,
                                     const ShardPlace& place, std::span<const ShardPiece> pieces) {
  PB_RETURN_IF_ERROR(Validate(settings));
  PB_RETURN_IF_ERROR(CheckPlaceIn(settings, level, place));
  ShardPiece whole = ChunksOf(settings, level, place);
  std::size_t size = 0;
  for (const ShardPiece& piece : pieces) size += piece.bytes.size();
  whole.bytes.reserve(size);
  for (std::int64_t i = 0; i < whole.rows * whole.columns; ++i) {
    const std::int64_t row = whole.row + i / whole.columns,
                       column = whole.column + i % whole.columns;
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const ShardPiece& p) {
      return p.level == place.level && row >= p.row && row < p.row + p.rows && column >= p.column &&
             column < p.column + p.columns;
    });
    if (piece == pieces.end()) {
      return absl::InvalidArgumentError(StrCat("assemble shard: ", ShardFileName(place), ": chunk ",
                                               row, ",", column, " is missing"));
    }
    EncodedChunk chunk = piece->chunks[static_cast<std::size_t>(
        (row - piece->row) * piece->columns + column - piece->column)];
    const auto bytes = std::span(piece->bytes).subspan(chunk.offset, chunk.size_bytes);
    chunk.offset = whole.bytes.size();
    whole.bytes.insert(whole.bytes.end(), bytes.begin(), bytes.end());
    whole.chunks.push_back(chunk);
  }
  return Finish(settings, place, std::move(whole));
}

/// By chunks into a row of them at a time.
StatusOr<EncodedShard> EncodeShard(const ImageStoreSettings& settings, const LevelSize& level,
                                   const ShardPlace& place, const ChunkPixels& pixels) {
  PB_RETURN_IF_ERROR(Validate(settings));
  PB_RETURN_IF_ERROR(CheckPlaceIn(settings, level, place));
  const std::int64_t side = settings.chunk_px;
  const ShardPiece chunks = ChunksOf(settings, level, place);
  const std::int64_t left = chunks.column * side;
  const std::int64_t width = std::min(settings.shard_px, level.width - left);
  std::vector<std::byte> band(static_cast<std::size_t>(side * width * PixelBytes(settings)));
  ShardEncoder encoder(settings, {level}, place);
  return encoder.Encode([&](std::int64_t row) -> StatusOr<ConstTensorView> {
    const std::int64_t height = std::min(side, level.height - row * side);
    const TensorView view = ContiguousView<3>(
        band.data(), settings.dtype, {height, width, static_cast<std::int64_t>(settings.channels)});
    for (std::int64_t column = 0; column < chunks.columns; ++column) {
      TensorView chunk = view;
      chunk.data += column * side * view.stride_bytes[1];
      chunk.shape[1] = std::min(side, width - column * side);
      PB_RETURN_IF_ERROR(pixels(row, chunks.column + column, chunk));
    }
    return ConstTensorView(view);
  });
}

}  // namespace patchbay::zarr

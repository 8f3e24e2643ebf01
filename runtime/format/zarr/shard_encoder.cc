#include "runtime/format/zarr/shard_encoder.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/downsample.h"

namespace patchbay::zarr {
namespace {

constexpr int kCoarserLevelsMax = 3;
/// A larger shard does not also make its coarser levels: they would take a third of its memory.
constexpr std::int64_t kMaxShardBytes = std::int64_t{512} << 20;
/// The expected upper bound of encoded pixels, so that the shard's bytes seldom move.
constexpr std::size_t kLikelyRatio = 2;
/// Offset and size of a chunk.
constexpr std::size_t kIndexEntryBytes = 2 * sizeof(std::uint64_t);

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

Extent Least(const Extent& a, const Extent& b) {
  return {std::min(a.z, b.z), std::min(a.y, b.y), std::min(a.x, b.x)};
}

/// Pixel or cell `cell` begins at in a grid of cells.
Point StartOf(const Point& cell, const Extent& size) {
  return {cell.z * size.z, cell.y * size.y, cell.x * size.x};
}

/// The rest of `whole` from `from` on.
Extent RestOf(const Extent& whole, const Point& from) {
  return {whole.z - from.z, whole.y - from.y, whole.x - from.x};
}

Status CheckPlaceIn(const ImageStoreSettings& settings, const Extent& level,
                    const ShardPlace& place) {
  const bool has_channel = settings.axes == StoreAxes::kCzyx
                               ? place.channel >= 0 && place.channel < settings.channels
                               : place.channel == -1;
  const bool is_inside = place.level >= 0 && place.at.Inside(ShardGridOf(settings, level));
  if (is_inside && has_channel) return absl::OkStatus();
  return InvalidArgument("encode shard: ", ShardFileName(place), ": outside the level");
}

void PutSeal(std::vector<std::byte>& bytes, std::uint32_t seal) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<std::byte>(seal >> shift));
}

/// The shard's file, its chunks, the seal and the index, without its digest.
EncodedShard Close(const ImageStoreSettings& settings, const ShardPlace& place, ShardPiece piece) {
  EncodedShard out;
  out.record.place = place;
  for (const EncodedChunk& chunk : piece.chunks) out.record.chunk_pixels.push_back(chunk.pixels);
  out.bytes = std::move(piece.bytes);
  if (out.bytes.empty()) return out;
  const Extent per_shard = settings.ChunksPerShard();
  const auto cells = static_cast<std::size_t>(per_shard.Pixels());
  out.bytes.reserve(out.bytes.size() + cells * kIndexEntryBytes + 2 * sizeof(std::uint32_t));
  std::vector<std::byte> index;
  index.reserve(cells * kIndexEntryBytes);
  for (std::int64_t i = 0; i < per_shard.Pixels(); ++i) {
    const Point at = CellAt(per_shard, i);
    const EncodedChunk* chunk = nullptr;
    if (at.Inside(piece.grid)) {
      chunk = &piece.chunks[static_cast<std::size_t>(IndexOf(piece.grid, at))];
    }
    if (chunk == nullptr || chunk->size_bytes == 0) {
      PutIndexEntry(index, ~std::uint64_t{0}, ~std::uint64_t{0});
    } else {
      PutIndexEntry(index, chunk->offset, chunk->size_bytes);
    }
  }
  PutSeal(out.bytes, SealOf(out.record.chunk_pixels));
  const std::size_t begin = out.bytes.size();
  out.bytes.insert(out.bytes.end(), index.begin(), index.end());
  PutChecksum(out.bytes, begin);
  out.record.size_bytes = out.bytes.size();
  return out;
}

EncodedShard Finish(const ImageStoreSettings& settings, const ShardPlace& place, ShardPiece piece) {
  EncodedShard out = Close(settings, place, std::move(piece));
  if (!out.bytes.empty()) out.record.digest = Sha256Of(std::span<const std::byte>(out.bytes));
  return out;
}

Status CheckWhole(const ImageStoreSettings& settings, const Extent& level, const ShardPlace& place,
                  const ShardPiece& whole) {
  PB_RETURN_IF_ERROR(CheckPlaceIn(settings, level, place));
  const ShardPiece chunks = ChunksOf(settings, level, place);
  if (whole.level == place.level && whole.first == chunks.first && whole.grid == chunks.grid &&
      whole.chunks.size() == static_cast<std::size_t>(chunks.grid.Pixels())) {
    return absl::OkStatus();
  }
  return InvalidArgument("assemble shard: ", ShardFileName(place), ": chunks are missing");
}

/// A box of an interleaved view.
template <typename View>
View Part(const View& view, const Point& begin, const Extent& size) {
  View part = view;
  part.data += begin.z * view.stride_bytes[0] + begin.y * view.stride_bytes[1] +
               begin.x * view.stride_bytes[2];
  part.shape[0] = size.z;
  part.shape[1] = size.y;
  part.shape[2] = size.x;
  return part;
}

Extent ExtentOf(const ConstTensorView& view) {
  return {view.shape[0], view.shape[1], view.shape[2]};
}

/// Where an axis is never halved, its one pixel stays.
std::int64_t Halved(std::int64_t side, int times) { return side == 1 ? 1 : side >> times; }

Extent Halved(const Extent& e, int times) {
  return {Halved(e.z, times), Halved(e.y, times), Halved(e.x, times)};
}

}  // namespace

ShardPiece ChunksOf(const ImageStoreSettings& settings, const Extent& level,
                    const ShardPlace& place) {
  const Extent per_shard = settings.ChunksPerShard();
  ShardPiece piece;
  piece.level = place.level;
  piece.first = StartOf(place.at, per_shard);
  piece.grid = Least(per_shard, RestOf(ChunkGridOf(settings, level), piece.first));
  return piece;
}

void AppendEncoded(std::span<const std::byte> encoded, const Digest& pixels, ShardPiece& piece) {
  EncodedChunk chunk{piece.bytes.size(), 0, pixels};
  if (!encoded.empty()) {
    piece.bytes.insert(piece.bytes.end(), encoded.begin(), encoded.end());
    PutChecksum(piece.bytes, chunk.offset);
    chunk.size_bytes = piece.bytes.size() - chunk.offset;
  }
  piece.chunks.push_back(chunk);
}

int CoarserLevels(const ImageStoreSettings& settings) {
  const bool is_large = settings.shard.Pixels() > kMaxShardBytes / settings.PixelBytes();
  const auto halves = [&](std::int64_t Extent::*side, int levels) {
    const std::int64_t chunk = settings.chunk.*side, shard = settings.shard.*side;
    return chunk % 2 == 0 && shard % (chunk << levels) == 0;
  };
  int levels = 0;
  while (!is_large && levels < kCoarserLevelsMax && halves(&Extent::y, levels + 1) &&
         halves(&Extent::x, levels + 1) &&
         (!settings.IsVolume() || halves(&Extent::z, levels + 1))) {
    ++levels;
  }
  return levels;
}

ShardEncoder::ShardEncoder(const ImageStoreSettings& settings, std::vector<Extent> levels,
                           const ShardPlace& place)
    : settings_(settings),
      levels_(std::move(levels)),
      place_(place),
      encoder_(settings),
      hasher_(settings) {}

Status ShardEncoder::CheckPlace() const {
  PB_RETURN_IF_ERROR(Validate(settings_));
  if (levels_.empty() || levels_.size() - 1 > static_cast<std::size_t>(CoarserLevels(settings_))) {
    return InvalidArgument("encode shard: ", levels_.size(), " levels at once");
  }
  for (std::size_t i = 1; i < levels_.size(); ++i) {
    if (levels_[i] != HalfOf(levels_[i - 1])) {
      return InvalidArgument("encode shard: a level is not half of the one before");
    }
  }
  return CheckPlaceIn(settings_, levels_[0], place_);
}

ShardEncoder::Area ShardEncoder::MakeArea(std::size_t coarser) const {
  const Extent side = Halved(settings_.shard, static_cast<int>(coarser));
  const Extent size = Least(side, RestOf(levels_[coarser], StartOf(place_.at, side)));
  Area area;
  area.bytes = std::make_unique_for_overwrite<std::byte[]>(
      static_cast<std::size_t>(size.Pixels() * settings_.PixelBytes()));
  area.view = ContiguousView<4>(
      area.bytes.get(), settings_.dtype,
      {size.z, size.y, size.x, static_cast<std::int64_t>(settings_.ChunkChannels())});
  return area;
}

bool ShardEncoder::IsFill(const ConstTensorView& chunk) const {
  const auto row_bytes = static_cast<std::size_t>(chunk.shape[2] * settings_.PixelBytes());
  for (std::int64_t z = 0; z < chunk.shape[0]; ++z) {
    for (std::int64_t y = 0; y < chunk.shape[1]; ++y) {
      const std::byte* row = chunk.data + z * chunk.stride_bytes[0] + y * chunk.stride_bytes[1];
      if (std::memcmp(row, fill_row_.data(), row_bytes) != 0) return false;
    }
  }
  return true;
}

/// The views of the chunks of `pixels`, row-major, and which of them are background.
ShardEncoder::ChunkViews ShardEncoder::Cut(const ConstTensorView& pixels) const {
  const Extent whole = ExtentOf(pixels), grid = CellsOf(whole, settings_.chunk);
  ChunkViews out;
  for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
    const Point corner = StartOf(CellAt(grid, i), settings_.chunk);
    out.views.push_back(Part(pixels, corner, Least(settings_.chunk, RestOf(whole, corner))));
    out.corners.push_back(corner);
    out.is_fill.push_back(IsFill(out.views.back()));
  }
  return out;
}

/// Slice `z` of a chunk into `raw_`, the rest of it background. Where `half` is a view, the slice
/// is averaged into it row by row, so that both find the pixels in the nearest cache.
Status ShardEncoder::CopySlice(const ConstTensorView& chunk, std::int64_t z,
                               const TensorView& half) {
  const std::size_t row_bytes = fill_row_.size();
  const auto own = static_cast<std::size_t>(chunk.shape[2] * settings_.PixelBytes());
  std::byte* slice = raw_.data() + static_cast<std::size_t>(z * settings_.chunk.y) * row_bytes;
  for (std::int64_t y = 0; y < settings_.chunk.y; ++y) {
    std::byte* to = slice + static_cast<std::size_t>(y) * row_bytes;
    const bool is_inside = z < chunk.shape[0] && y < chunk.shape[1];
    const std::size_t take = is_inside ? own : 0;
    if (take > 0) {
      std::memcpy(to, chunk.data + z * chunk.stride_bytes[0] + y * chunk.stride_bytes[1], take);
    }
    std::memcpy(to + take, fill_row_.data() + take, row_bytes - take);
    const bool is_pair_done = y % 2 == 1 || y + 1 == chunk.shape[1];
    if (half.data == nullptr || !is_inside || !is_pair_done) continue;
    const std::int64_t top = y / 2 * 2;
    const ConstTensorView pair = Part(
        chunk, {z, top, 0}, {1, std::min<std::int64_t>(2, chunk.shape[1] - top), chunk.shape[2]});
    PB_RETURN_IF_ERROR(DownsampleByTwo(pair, Part(half, {0, y / 2, 0}, {1, 1, half.shape[2]})));
  }
  return absl::OkStatus();
}

/// A chunk's pixels into `raw_`, and averaged into `half` where that is a view: two slices of a
/// volume at a time.
Status ShardEncoder::CopyAndHalve(const ConstTensorView& chunk, const TensorView& half) {
  const bool is_flat = !settings_.IsVolume();
  for (std::int64_t z = 0; z < settings_.chunk.z; ++z) {
    PB_RETURN_IF_ERROR(CopySlice(chunk, z, is_flat ? half : TensorView{}));
  }
  if (is_flat || half.data == nullptr) return absl::OkStatus();
  return DownsampleByTwo(chunk, half);
}

Status ShardEncoder::Append(const ConstTensorView& pixels, const TensorView& half,
                            ShardPiece& piece) {
  const ChunkViews chunks = Cut(pixels);
  const std::vector<Digest> digests = hasher_.HashEach(chunks.views, chunks.is_fill);
  for (std::size_t i = 0; i < chunks.views.size(); ++i) {
    TensorView part = half;
    if (half.data != nullptr) {
      const Point& corner = chunks.corners[i];
      part =
          Part(half, {corner.z / 2, corner.y / 2, corner.x / 2}, HalfOf(ExtentOf(chunks.views[i])));
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

Status ShardEncoder::Prepare() {
  PB_RETURN_IF_ERROR(CheckPlace());
  const auto row_bytes = static_cast<std::size_t>(settings_.chunk.x * settings_.PixelBytes());
  raw_.resize(row_bytes * static_cast<std::size_t>(settings_.chunk.z * settings_.chunk.y));
  fill_row_.resize(row_bytes);
  const std::optional<Element> fill = ElementOf(settings_.fill_value, settings_.dtype);
  const std::size_t element = SizeOf(settings_.dtype);
  for (std::size_t i = 0; i < row_bytes; i += element) {
    std::memcpy(fill_row_.data() + i, fill->data(), element);
  }
  for (std::size_t i = 1; i < levels_.size(); ++i) areas_.push_back(MakeArea(i));
  return absl::OkStatus();
}

StatusOr<EncodedShard> ShardEncoder::Encode(const ShardRows& rows) {
  PB_RETURN_IF_ERROR(Prepare());
  ShardPiece piece = ChunksOf(settings_, levels_[0], place_);
  const Extent size =
      Least(settings_.shard, RestOf(levels_[0], StartOf(place_.at, settings_.shard)));
  piece.bytes.reserve(static_cast<std::size_t>(size.Pixels() * settings_.PixelBytes()) /
                      kLikelyRatio);
  for (std::int64_t z = 0; z < size.z; z += settings_.chunk.z) {
    const std::int64_t slices = std::min(settings_.chunk.z, size.z - z);
    for (std::int64_t y = 0; y < size.y;) {
      const Point chunk = {piece.first.z + z / settings_.chunk.z,
                           piece.first.y + y / settings_.chunk.y, piece.first.x};
      PB_ASSIGN_OR_RETURN(const ConstTensorView band, rows(chunk));
      const std::int64_t height = band.shape[1];
      const bool is_whole = y + height == size.y || height % settings_.chunk.y == 0;
      if (height <= 0 || y + height > size.y || !is_whole || band.shape[0] != slices) {
        return Internal("encode shard: rows that are not whole chunks");
      }
      TensorView half;
      if (!areas_.empty()) {
        half = Part(areas_[0].view, {z / 2, y / 2, 0}, HalfOf(ExtentOf(band)));
      }
      PB_RETURN_IF_ERROR(Append(band, half, piece));
      y += height;
    }
  }
  return Finish(settings_, place_, std::move(piece));
}

StatusOr<std::vector<ShardPiece>> ShardEncoder::EncodeCoarser() {
  std::vector<ShardPiece> pieces;
  for (std::size_t i = 0; i < areas_.size(); ++i) {
    const TensorView& view = areas_[i].view;
    const int above = static_cast<int>(i) + 1;
    ShardPiece piece;
    piece.level = place_.level + above;
    piece.first = StartOf(place_.at, CellsOf(Halved(settings_.shard, above), settings_.chunk));
    piece.grid = CellsOf(ExtentOf(view), settings_.chunk);
    const TensorView half = i + 1 < areas_.size() ? areas_[i + 1].view : TensorView{};
    PB_RETURN_IF_ERROR(Append(view, half, piece));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

StatusOr<EncodedShard> AssembleShard(const ImageStoreSettings& settings, const Extent& level,
                                     const ShardPlace& place, std::span<const ShardPiece> pieces) {
  PB_RETURN_IF_ERROR(Validate(settings));
  PB_RETURN_IF_ERROR(CheckPlaceIn(settings, level, place));
  ShardPiece whole = ChunksOf(settings, level, place);
  std::size_t size = 0;
  for (const ShardPiece& piece : pieces) size += piece.bytes.size();
  whole.bytes.reserve(size);
  for (std::int64_t i = 0; i < whole.grid.Pixels(); ++i) {
    const Point cell = CellAt(whole.grid, i);
    const Point at{whole.first.z + cell.z, whole.first.y + cell.y, whole.first.x + cell.x};
    const auto within = [&](const ShardPiece& p) {
      return Point{at.z - p.first.z, at.y - p.first.y, at.x - p.first.x};
    };
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const ShardPiece& p) {
      return p.level == place.level && within(p).Inside(p.grid);
    });
    if (piece == pieces.end()) {
      return InvalidArgument("assemble shard: ", ShardFileName(place), ": chunk (",
                             at.ToString(","), ") is missing");
    }
    EncodedChunk chunk =
        piece->chunks[static_cast<std::size_t>(IndexOf(piece->grid, within(*piece)))];
    const auto bytes = std::span(piece->bytes).subspan(chunk.offset, chunk.size_bytes);
    chunk.offset = whole.bytes.size();
    whole.bytes.insert(whole.bytes.end(), bytes.begin(), bytes.end());
    whole.chunks.push_back(chunk);
  }
  return Finish(settings, place, std::move(whole));
}

StatusOr<EncodedShard> AssembleShard(const ImageStoreSettings& settings, const Extent& level,
                                     const ShardPlace& place, ShardPiece whole) {
  PB_RETURN_IF_ERROR(Validate(settings));
  PB_RETURN_IF_ERROR(CheckWhole(settings, level, place, whole));
  return Finish(settings, place, std::move(whole));
}

StatusOr<std::vector<EncodedShard>> AssembleShards(const ImageStoreSettings& settings,
                                                   std::vector<WholeShard> shards) {
  PB_RETURN_IF_ERROR(Validate(settings));
  std::vector<EncodedShard> assembled;
  std::vector<ByteRows> files;
  for (WholeShard& shard : shards) {
    PB_RETURN_IF_ERROR(CheckWhole(settings, shard.level, shard.place, shard.piece));
    assembled.push_back(Close(settings, shard.place, std::move(shard.piece)));
    const std::vector<std::byte>& file = assembled.back().bytes;
    files.push_back({.first = file.data(), .row_bytes = file.size()});
  }
  const std::vector<Digest> digests = Sha256OfEach(files);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (!assembled[i].bytes.empty()) assembled[i].record.digest = digests[i];
  }
  return assembled;
}

/// Encodes one row of chunks at a time.
StatusOr<EncodedShard> EncodeShard(const ImageStoreSettings& settings, const Extent& level,
                                   const ShardPlace& place, const ChunkPixels& pixels) {
  PB_RETURN_IF_ERROR(Validate(settings));
  PB_RETURN_IF_ERROR(CheckPlaceIn(settings, level, place));
  const ShardPiece chunks = ChunksOf(settings, level, place);
  const std::int64_t left = place.at.x * settings.shard.x;
  const std::int64_t width = std::min(settings.shard.x, level.x - left);
  std::vector<std::byte> band(static_cast<std::size_t>(settings.chunk.z * settings.chunk.y * width *
                                                       settings.PixelBytes()));
  ShardEncoder encoder(settings, {level}, place);
  return encoder.Encode([&](const Point& first) -> StatusOr<ConstTensorView> {
    const Extent rest = RestOf(level, StartOf(first, settings.chunk));
    const TensorView view =
        ContiguousView<4>(band.data(), settings.dtype,
                          {std::min(settings.chunk.z, rest.z), std::min(settings.chunk.y, rest.y),
                           width, static_cast<std::int64_t>(settings.ChunkChannels())});
    for (std::int64_t column = 0; column < chunks.grid.x; ++column) {
      const std::int64_t x = column * settings.chunk.x;
      const TensorView chunk = Part(
          view, {0, 0, x}, {view.shape[0], view.shape[1], std::min(settings.chunk.x, width - x)});
      PB_RETURN_IF_ERROR(pixels({first.z, first.y, first.x + column}, chunk));
    }
    return ConstTensorView(view);
  });
}

}  // namespace patchbay::zarr

#include "workers/jobs/ingest/pixels.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/opened_store.h"
#include "runtime/format/zarr/shard_encoder.h"

namespace patchbay::workers {
namespace {

/// Most pixels handed over at once; a larger shard is made in bands of whole chunk rows. Larger
/// means more chunks hashed side by side; below malloc's largest heap block the memory is taken
/// from the kernel once.
constexpr std::int64_t kMaxBandBytes = std::int64_t{16} << 20;
/// Source tiles of more rows are decoded in parts.
constexpr std::int64_t kMaxTileRows = 512;

}  // namespace

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
      counts_colours_(place.level == 0 && HasColours(slide.store)) {
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

/// `rows` begin at level row `begin`; those that were counted before are left out.
Status ShardPixels::CountColours(const ConstTensorView& rows, std::int64_t begin) {
  const std::int64_t counted = std::max<std::int64_t>(counted_end_ - begin, 0);
  if (counted >= rows.shape[1]) return absl::OkStatus();
  ConstTensorView fresh = rows;
  fresh.data += counted * rows.stride_bytes[1];
  fresh.shape[1] -= counted;
  counted_end_ = begin + rows.shape[1];
  return colours_.Add(fresh);
}

}  // namespace patchbay::workers

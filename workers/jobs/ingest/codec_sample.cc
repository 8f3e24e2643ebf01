#include "workers/jobs/ingest/codec_sample.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/core/element.h"
#include "runtime/core/hash.h"
#include "runtime/core/random.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/format/zarr/store_metadata.h"
#include "runtime/os/work_meter.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kPatchSide = 512, kVolumePatchSide = 96;
/// Patches read of every sample of chunks.
constexpr int kPatchesEach = 2;

/// The parts of an axis of a patch that lie in one chunk each: (first in the chunk, length).
std::vector<std::pair<std::int64_t, std::int64_t>> PartsOf(std::int64_t patch, std::int64_t chunk,
                                                           std::int64_t first) {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  for (std::int64_t done = 0; done < patch; done += parts.back().second, first = 0) {
    parts.emplace_back(first, std::min(chunk - first, patch - done));
  }
  return parts;
}

std::int64_t CornerWithin(std::uint32_t word, std::int64_t side) { return word % side; }

}  // namespace

double TakeCpuNs() { return static_cast<double>(TakeSpent().cpu_ns); }

Extent SampledPatch(const zarr::ImageStoreSettings& store) {
  return store.axes == zarr::StoreAxes::kZyx
             ? Extent{kVolumePatchSide, kVolumePatchSide, kVolumePatchSide}
             : Flat(kPatchSide, kPatchSide);
}

StatusOr<std::unique_ptr<CodecSample>> CodecSample::Make(zarr::ImageStoreSettings store,
                                                         zarr::StoreCodec codec) {
  store.codec = codec;
  zarr::ImageStoreSpec spec;
  spec.settings = store;
  spec.levels = {store.shard};
  PB_ASSIGN_OR_RETURN(const zarr::MetadataDocuments documents, zarr::BuildMetadata(spec));
  // As text, and back: whole numbers are written as such.
  PB_ASSIGN_OR_RETURN(const Json document,
                      ParseJson(DumpJson(documents.at("0/zarr.json")), "sample"));
  PB_ASSIGN_OR_RETURN(zarr::ArrayMetadata array, zarr::ParseArrayV3(document, "sample"));
  return std::unique_ptr<CodecSample>(new CodecSample(store, std::move(array)));
}

/// The chunk of `pixels` with that corner into raw_.
void CodecSample::CopyChunk(const ConstTensorView& pixels, const Point& corner) {
  const Extent& chunk = store_.chunk;
  raw_.assign(static_cast<std::size_t>(chunk.Pixels() * store_.PixelBytes()), std::byte{0xff});
  const std::int64_t width = std::min(chunk.x, pixels.shape[2] - corner.x) * store_.PixelBytes();
  for (std::int64_t z = 0; z < std::min(chunk.z, pixels.shape[0] - corner.z); ++z) {
    for (std::int64_t y = 0; y < std::min(chunk.y, pixels.shape[1] - corner.y); ++y) {
      std::memcpy(raw_.data() + (z * chunk.y + y) * chunk.x * store_.PixelBytes(),
                  pixels.data + (corner.z + z) * pixels.stride_bytes[0] +
                      (corner.y + y) * pixels.stride_bytes[1] + corner.x * pixels.stride_bytes[2],
                  static_cast<std::size_t>(width));
    }
  }
}

Status CodecSample::Add(const ConstTensorView& pixels) {
  const Extent& chunk = store_.chunk;
  const auto whole = [&](int axis, std::int64_t side) {
    return std::max<std::int64_t>(1, pixels.shape[axis] / side);
  };
  zarr::ShardPiece piece;
  piece.grid = {whole(0, chunk.z), whole(1, chunk.y), whole(2, chunk.x)};
  double ns = 0;
  for (std::int64_t i = 0; i < piece.grid.Pixels(); ++i) {
    const Point at = CellAt(piece.grid, i);
    CopyChunk(pixels, {at.z * chunk.z, at.y * chunk.y, at.x * chunk.x});
    encoded_.clear();
    TakeCpuNs();
    PB_RETURN_IF_ERROR(encoder_.Append(raw_, encoded_));
    zarr::AppendEncoded(encoded_, Digest(), piece);
    ns += TakeCpuNs();
    raw_bytes_ += static_cast<double>(raw_.size());
  }
  TakeCpuNs();
  for (int reading = 0; reading < 2; ++reading) (void)Sha256Of(piece.bytes);
  encode_ns_ += ns + TakeCpuNs();
  stored_bytes_ += static_cast<double>(piece.bytes.size());
  for (int i = 0; i < kPatchesEach; ++i) PB_RETURN_IF_ERROR(ReadPatch(piece));
  return absl::OkStatus();
}

/// A patch at a random place of the chunk grid, out of chunks of the piece.
Status CodecSample::ReadPatch(const zarr::ShardPiece& piece) {
  const Extent patch = SampledPatch(store_);
  const PhiloxBlock draw = Philox4x32({{draws_++, 0, 0, 0}}, 0, 0);
  const auto parts_z = PartsOf(patch.z, store_.chunk.z, CornerWithin(draw.word[0], store_.chunk.z));
  const auto parts_y = PartsOf(patch.y, store_.chunk.y, CornerWithin(draw.word[1], store_.chunk.y));
  const auto parts_x = PartsOf(patch.x, store_.chunk.x, CornerWithin(draw.word[2], store_.chunk.x));
  patch_pixels_.resize(static_cast<std::size_t>(patch.Pixels() * store_.PixelBytes()));
  TakeCpuNs();
  Point to;
  for (const auto& [z, depth] : parts_z) {
    to.y = 0;
    for (const auto& [y, height] : parts_y) {
      to.x = 0;
      for (const auto& [x, width] : parts_x) {
        PB_RETURN_IF_ERROR(DecodePart(piece, {z, y, x}, {depth, height, width}, to));
        to.x += width;
      }
      to.y += height;
    }
    to.z += depth;
  }
  patch_.ns += TakeCpuNs();
  patch_.patches += 1;
  return absl::OkStatus();
}

/// A part of the next chunk of the piece: its bytes copied, as a read from memory copies them, and
/// decoded.
Status CodecSample::DecodePart(const zarr::ShardPiece& piece, const Point& from, const Extent& part,
                               const Point& to) {
  const zarr::EncodedChunk& chunk = piece.chunks[draws_++ % piece.chunks.size()];
  patch_.bytes += static_cast<double>(chunk.size_bytes);
  fetched_.resize(std::max<std::size_t>(fetched_.size(), chunk.size_bytes));
  std::memcpy(fetched_.data(), piece.bytes.data() + chunk.offset, chunk.size_bytes);
  const Extent patch = SampledPatch(store_);
  const std::int64_t pixel = store_.PixelBytes(), row = patch.x * pixel, slice = patch.y * row;
  zarr::ChunkTarget target;
  target.to = patch_pixels_.data() + to.z * slice + to.y * row + to.x * pixel;
  if (store_.axes == zarr::StoreAxes::kZyx) {
    target.from = {from.z, from.y, from.x};
    target.shape = {part.z, part.y, part.x};
    target.stride_bytes = {slice, row, pixel};
  } else {
    target.from = {0, from.y, from.x};
    target.shape = {store_.channels, part.y, part.x};
    target.stride_bytes = {static_cast<std::int64_t>(SizeOf(store_.dtype)), row, pixel};
  }
  return zarr::DecodeChunkInto(array_, std::span(fetched_).first(chunk.size_bytes), target,
                               scratch_.state());
}

}  // namespace patchbay::workers

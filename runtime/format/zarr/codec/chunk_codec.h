// Turning the stored bytes of one inner chunk into elements of a strided view, and decoding no more
// of it than the view needs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/tiles/slide_tile_decoder.h"
#include "runtime/format/zarr/codec/array_metadata.h"
#include "runtime/format/zarr/codec/blosc.h"

namespace patchbay::zarr {

/// Decoder contexts and buffers of one thread. Not thread-safe; may be used with many arrays.
class ChunkScratch {
 public:
  ChunkScratch();
  ~ChunkScratch();
  ChunkScratch(ChunkScratch&&) noexcept;
  ChunkScratch& operator=(ChunkScratch&&) noexcept;
  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

struct ChunkScratch::State {
  State();
  ~State();
  BlockScratch blocks;                ///< its context is owned here
  std::vector<std::byte> buffers[2];  ///< codec stages alternate between them
  tiles::SlideTileDecoder tiles;
};

/// Where a chunk's elements go: the box [from, from + shape) of the chunk, in array axes and chunk
/// coordinates, to `to` with `stride_bytes` per array axis.
struct ChunkTarget {
  Coordinates from{}, shape{};
  std::byte* to = nullptr;
  Coordinates stride_bytes{};
};

/// `stored` decodes to exactly one chunk or the result is DataLoss. Allocates at most about twice
/// the chunk's size, whatever the stored bytes claim.
Status DecodeChunkInto(const ArrayMetadata& array, std::span<const std::byte> stored,
                       const ChunkTarget& target, ChunkScratch::State& scratch);

/// The fill value over the whole target.
void FillChunk(const ArrayMetadata& array, const ChunkTarget& target);

/// One byte stage of the chain: checksums are checked and cut off, compressed bytes expanded to at
/// most `max_bytes`. The result is `in` itself or lies in `buffer`; `blocks` keeps apart from it.
StatusOr<std::span<const std::byte>> DecodeStage(const Codec& codec, std::span<const std::byte> in,
                                                 std::size_t max_bytes, BlockScratch& blocks,
                                                 std::vector<std::byte>& buffer);

/// Element type of the bytes below the typed codecs.
DType StoredDType(const CodecChain& chain, DType dtype);

/// Runs the first `typed` codecs of the chain backwards over `in`; native elements of `dtype` go to
/// `out`, which must not be where `in` lies.
Status DecodeTyped(const CodecChain& chain, std::size_t typed, DType dtype,
                   std::span<const std::byte> in, std::vector<std::byte>& out);

}  // namespace patchbay::zarr

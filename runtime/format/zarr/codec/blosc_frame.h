// Blosc-1 frames, read block by block: a crop decodes only the blocks it touches, into a reused
// decoder context. What this cannot take apart (bit-shuffled frames, rarer inner codecs) goes to
// c-blosc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"

struct ZSTD_DCtx_s;

namespace patchbay::zarr {

/// Scratch that decoding blocks reuses; one thread's. Owns no context.
struct BlockScratch {
  ZSTD_DCtx_s* zstd = nullptr;
  std::vector<std::byte> planes;  ///< a block whose bytes are still apart
};

/// The header of a frame, checked against the bytes that are there.
struct BloscFrame {
  std::span<const std::byte> bytes;  ///< header included, exactly the frame
  std::size_t nbytes = 0;            ///< decoded size
  std::size_t block_bytes = 0;
  std::size_t blocks = 0;
  int type_bytes = 1;
  int codec = 0;  ///< 0 blosclz, 1 lz4, 2 snappy, 3 zlib, 4 zstd
  bool stored = false, split = false;
  bool shuffled = false;  ///< by bytes: a block holds all first bytes, then all second ones, ...
  bool bit_shuffled = false;

  /// DataLoss with the reason unless `bytes` is, by its header, one whole frame that decodes to
  /// `expected_bytes`.
  static StatusOr<BloscFrame> Parse(std::span<const std::byte> bytes, std::size_t expected_bytes);

  /// Whether blocks can be decoded one by one here.
  bool BlockWise() const { return stored || (!bit_shuffled && (codec == 1 || codec == 4)); }
  std::size_t BlockSize(std::size_t block) const {
    return block + 1 == blocks ? nbytes - block * block_bytes : block_bytes;
  }

  /// Decodes one block into `out`, BlockSize(block) bytes. Only where BlockWise().
  Status DecodeBlock(std::size_t block, BlockScratch& scratch, std::byte* out) const;

  /// The same of a frame that is `shuffled`, with its bytes still apart.
  Status DecodePlanes(std::size_t block, ZSTD_DCtx_s* zstd, std::byte* out) const;

  /// Decodes everything into `out`, nbytes of it, whatever the frame's kind.
  Status DecodeAll(BlockScratch& scratch, std::byte* out) const;

  /// Decodes decoded bytes [begin, end) into `out`, through c-blosc; both are multiples of
  /// type_bytes.
  Status DecodeItems(std::size_t begin, std::size_t end, std::byte* out) const;
};

}  // namespace patchbay::zarr

// Blosc-1 frames, read block by block: a crop decodes only the blocks it touches, into a reused
// decoder context. Frames that this does not support (bit-shuffled ones, rarer inner codecs) are
// decoded by c-blosc. Frames of zstd are also encoded here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/zarr/codec/strided_copy.h"

struct ZSTD_DCtx_s;

struct ZSTD_CCtx_s;

namespace patchbay::zarr {

/// Four bytes, the least significant first.
inline std::uint32_t Load32(const std::byte* p) {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// `planes` holds the first bytes of all `elements`, then their second bytes, and so on. Writes
/// elements [first, first + count) to `out`, count * element_bytes bytes.
void Unshuffle(const std::byte* planes, std::size_t elements, std::size_t element_bytes,
               std::size_t first, std::size_t count, std::byte* out);

/// Copies the box of a plan whose lines are runs of elements on both sides, from `elements`
/// elements in planes. The box begins at element `first`; the plan's offsets are those of whole
/// elements.
void UnshuffleBox(const CopyPlan& plan, const std::byte* planes, std::size_t elements,
                  std::size_t first, std::byte* out);

/// Scratch that decoding blocks reuses; one thread's. Owns no context.
struct BlockScratch {
  ZSTD_DCtx_s* zstd = nullptr;
  std::vector<std::byte> planes;  ///< a block whose bytes are still apart
};

/// The header of a frame, checked against the available bytes.
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

  /// DecodeBlock without the unshuffling, for a frame that is `shuffled`: the byte planes stay
  /// separate.
  Status DecodePlanes(std::size_t block, ZSTD_DCtx_s* zstd, std::byte* out) const;

  /// Decodes everything into `out`, nbytes of it, whatever the frame's kind.
  Status DecodeAll(BlockScratch& scratch, std::byte* out) const;

  /// Decodes decoded bytes [begin, end) into `out`, through c-blosc; both are multiples of
  /// type_bytes.
  Status DecodeItems(std::size_t begin, std::size_t end, std::byte* out) const;
};

// Chunks of pixels into Blosc frames of zstd blocks. Not by c-blosc's own encoder: it searches
// every block of pixels as hard as text, makes a zstd context for each, and starts over on a chunk
// when one block of it does not compress.

/// Frames that any c-blosc reads: elements of one byte, not shuffled, not split. A frame depends on
/// the chunk's bytes and the settings alone. Not thread-safe.
class BloscZstdEncoder {
 public:
  /// `level` is 1 to 9. Up to 3 every block is compressed quickly; from 4 to 6 a block is searched
  /// thoroughly where that pays (notes/0003); from 7 on it is compressed as c-blosc would at that
  /// level.
  BloscZstdEncoder(int level, std::uint32_t block_bytes);
  ~BloscZstdEncoder();
  BloscZstdEncoder(const BloscZstdEncoder&) = delete;
  BloscZstdEncoder& operator=(const BloscZstdEncoder&) = delete;

  /// The frame of `raw`; valid until the next call. A chunk that does not compress is stored as it
  /// is, and takes 16 bytes more.
  StatusOr<std::span<const std::byte>> Encode(std::span<const std::byte> raw);

 private:
  enum class Search : std::uint8_t { kQuick, kThorough };
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  using Context = std::unique_ptr<ZSTD_CCtx_s, FreeContext>;

  /// Compresses `block` to `out`, or copies it when that is no larger; bytes written.
  std::size_t EncodeBlock(ZSTD_CCtx_s* zstd, std::span<const std::byte> block, std::byte* out);
  std::size_t EncodeBlocks(std::span<const std::byte> raw, std::size_t block_bytes);
  std::size_t Store(std::span<const std::byte> raw);

  std::size_t block_bytes_;
  bool is_adaptive_;
  Context quick_, thorough_;  ///< null where the level never takes that search
  std::vector<std::byte> frame_;
};

}  // namespace patchbay::zarr

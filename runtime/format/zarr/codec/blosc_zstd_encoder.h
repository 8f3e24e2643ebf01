// Chunks of pixels into Blosc frames of zstd blocks. Not by c-blosc's own encoder: it searches
// every block of pixels as hard as text, makes a zstd context for each, and starts over on a chunk
// when one block of it does not compress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/status.h"

struct ZSTD_CCtx_s;

namespace patchbay::zarr {

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

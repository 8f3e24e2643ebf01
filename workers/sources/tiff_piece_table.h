// Where the tiles or strips of a level lie, in a half to a quarter of the bytes of two plain lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// One tile or strip in the file.
struct TiffPiece {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;  ///< 0: absent; 2^32-1 stands for that and anything larger
};

/// Immutable. In blocks of 64 pieces: where they lie one after another, only their sizes are kept;
/// elsewhere their distances to the first byte of the block as well, in 32 bits where these
/// suffice.
class TiffPieceTable {
 public:
  TiffPieceTable() = default;
  explicit TiffPieceTable(const TiffPieces& pieces);

  std::size_t size() const { return sizes_.size(); }
  /// `i` below size().
  TiffPiece At(std::size_t i) const;
  std::size_t MemoryBytes() const;

 private:
  struct Block {
    std::uint64_t base = 0;  ///< least offset of the block
    /// Where its distances begin in near_ or far_; neither: its pieces follow one another.
    std::uint32_t near = kNone, far = kNone;
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  void AddBlock(const TiffPieces& pieces, std::size_t begin, std::size_t end);

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint32_t> near_;
  std::vector<std::uint64_t> far_;
};

}  // namespace patchbay::workers

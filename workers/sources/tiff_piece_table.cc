#include "workers/sources/tiff_piece_table.h"

#include <algorithm>

namespace patchbay::workers {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::uint64_t kMost32 = 0xFFFFFFFF;

bool FollowOneAnother(const TiffPieces& pieces, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (pieces.size_bytes[i - 1] >= kMost32) return false;
    if (pieces.offset[i] != pieces.offset[i - 1] + pieces.size_bytes[i - 1]) return false;
  }
  return true;
}

}  // namespace

TiffPieceTable::TiffPieceTable(const TiffPieces& pieces) {
  const std::size_t count = pieces.offset.size();
  sizes_.reserve(count);
  blocks_.reserve((count + kBlock - 1) / kBlock);
  for (const std::uint64_t size : pieces.size_bytes) {
    sizes_.push_back(static_cast<std::uint32_t>(std::min(size, kMost32)));
  }
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    AddBlock(pieces, begin, std::min(begin + kBlock, count));
  }
  near_.shrink_to_fit();
  far_.shrink_to_fit();
}

void TiffPieceTable::AddBlock(const TiffPieces& pieces, std::size_t begin, std::size_t end) {
  const auto first = pieces.offset.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = pieces.offset.begin() + static_cast<std::ptrdiff_t>(end);
  const auto [least, most] = std::minmax_element(first, last);
  Block block{*least};
  if (!FollowOneAnother(pieces, begin, end)) {
    const bool is_near = *most - *least <= kMost32;
    (is_near ? block.near : block.far) =
        static_cast<std::uint32_t>(is_near ? near_.size() : far_.size());
    for (auto offset = first; offset != last; ++offset) {
      if (is_near) near_.push_back(static_cast<std::uint32_t>(*offset - *least));
      if (!is_near) far_.push_back(*offset - *least);
    }
  }
  blocks_.push_back(block);
}

TiffPiece TiffPieceTable::At(std::size_t i) const {
  const Block& block = blocks_[i / kBlock];
  const std::size_t begin = i / kBlock * kBlock;
  TiffPiece piece{block.base, sizes_[i]};
  if (block.near != kNone) {
    piece.offset += near_[block.near + (i - begin)];
  } else if (block.far != kNone) {
    piece.offset += far_[block.far + (i - begin)];
  } else {
    for (std::size_t k = begin; k < i; ++k) piece.offset += sizes_[k];
  }
  return piece;
}

std::size_t TiffPieceTable::MemoryBytes() const {
  return blocks_.capacity() * sizeof(Block) + 4 * (sizes_.capacity() + near_.capacity()) +
         8 * far_.capacity();
}

}  // namespace patchbay::workers

// Offsets and sizes of a TIFF's pieces come back from the table as they went in.
#include <algorithm>

#include <gtest/gtest.h>

#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

void ExpectSame(const TiffPieces& pieces) {
  const TiffPieceTable table(pieces);
  ASSERT_EQ(table.size(), pieces.offset.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    ASSERT_EQ(table.At(i).offset, pieces.offset[i]) << i;
    ASSERT_EQ(table.At(i).size_bytes, pieces.size_bytes[i]) << i;
  }
}

TEST(TiffPieceTable, GivesBackEveryOrderOfPieces) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
  TiffPieces dense, gaps, backwards, far, holes;
  std::uint64_t at = 1000;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t size = 100 + i * 7919 % 5000;
    const auto add = [&](TiffPieces& to, std::uint64_t offset, std::uint64_t bytes) {
      to.offset.push_back(offset);
      to.size_bytes.push_back(bytes);
    };
    add(dense, kFar + at, size);
    add(gaps, at + i, size);
    add(backwards, kFar - at, size);
    add(far, i % 2 == 0 ? at : kFar + at, size);
    add(holes, i % 5 == 0 ? 0 : at, i % 5 == 0 ? 0 : size);
    at += size;
  }
  for (const TiffPieces& pieces : {dense, gaps, backwards, far, holes}) ExpectSame(pieces);
  ExpectSame(TiffPieces{});
  EXPECT_LT(TiffPieceTable(dense).MemoryBytes(), 1000u * 5);
  EXPECT_LT(TiffPieceTable(gaps).MemoryBytes(), 1000u * 9);
  EXPECT_LT(TiffPieceTable(far).MemoryBytes(), 1000u * 13);
}

TEST(TiffPieceTable, NoFileMakesItWrong) {
  // Offsets and sizes at the ends of their range: nothing overflows, sizes are cut at 32 bits.
  TiffPieces pieces;
  for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1} << 63}) {
    for (const std::uint64_t size :
         {~std::uint64_t{0}, std::uint64_t{0xFFFFFFFF}, std::uint64_t{5}}) {
      pieces.offset.push_back(offset);
      pieces.size_bytes.push_back(size);
    }
  }
  const TiffPieceTable table(pieces);
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table.At(i).offset, pieces.offset[i]);
    EXPECT_EQ(table.At(i).size_bytes, std::min<std::uint64_t>(pieces.size_bytes[i], 0xFFFFFFFF));
  }
}

}  // namespace
}  // namespace patchbay::workers

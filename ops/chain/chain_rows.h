// Turns a row of uint8 pixels into finished elements on the CPU. Every path gives the bits of the
// table it was made from; paths differ only in speed. A part of chain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/lanes/cast_bits.h"

namespace patchbay::ops {

inline constexpr std::size_t kTableEntries = 256;

/// Bytes of an element.
constexpr std::int64_t ElementBytes(CastTo to) {
  return to == CastTo::kUint8 ? 1 : to == CastTo::kFloat32 ? 4 : 2;
}

/// The best instructions that a row maker may use; those that the machine lacks are never used.
enum class CpuLevel : std::uint8_t { kTable, kAvx2, kBest };

/// Bytes 0..3 of the entries of three channels, 256 bytes each, for byte shuffles.
struct alignas(64) ByteTables {
  std::uint8_t plane[4][3][kTableEntries];
};

/// value = fma(x, slope, offset) in float.
struct AffineLine {
  float slope = 1, offset = 0;
};

/// The lines of three channels; a value is the sum of both where one cannot give the table's bits.
struct AffineRow {
  bool has_rest = false;
  std::array<AffineLine, 3> line{};
  std::array<AffineLine, 3> rest{};  ///< below the last bit of `line`
};

/// One row: `width` pixels of interleaved channels, contiguous.
struct ByteRow {
  const std::uint8_t* row = nullptr;
  std::int64_t width = 0;
  std::byte* out = nullptr;      ///< the row's first element (of channel 0 when planar)
  std::int64_t plane_bytes = 0;  ///< planar: from one channel's plane to the next
  bool mirrored = false;         ///< the row is made from its last pixel on; where CanMirror
  bool stream = false;           ///< store past the caches where alignment allows
};

/// Immutable; safe to share between threads.
class RowMaker {
 public:
  enum class Path : std::uint8_t { kCopy, kSplit, kTable, kAffine, kShuffle };

  /// `exact` has the 256 values of each channel before they are rounded to the output type; their
  /// rounding is the table that defines the result.
  RowMaker(std::span<const double> exact, int channels, CastTo to, bool planar, CpuLevel level);

  /// table()[c * 256 + v]: the finished value of channel c for input v, as bits of the output type
  /// in the low bytes.
  std::span<const std::uint32_t> table() const { return table_; }

  void Make(const ByteRow& pixels) const;
  Path path() const { return path_; }
  std::string_view PathName() const;
  /// True when the finished elements were written past the caches: call FinishStreaming before
  /// others may read them.
  bool CanStream() const { return path_ == Path::kShuffle || path_ == Path::kAffine; }
  /// True when rows of that width may be given as they lie in the source and made mirrored.
  bool CanMirror(std::int64_t width) const;
  static void FinishStreaming();

 private:
  void MakeByTable(const ByteRow& pixels, std::int64_t first) const;

  std::vector<std::uint32_t> table_;
  int channels_;
  CastTo to_;
  bool planar_;
  Path path_ = Path::kTable;
  ByteTables bytes_{};
  AffineRow affine_;
};

/// The table of values: each rounded once to float and once to the output type.
std::vector<std::uint32_t> TableOf(std::span<const double> exact, CastTo to);

/// A line that gives exactly the table of `exact` (256 values), among those close to the line
/// through its ends; nullopt when there is none.
std::optional<AffineLine> FindAffine(std::span<const double> exact, CastTo to);
/// A line and its rest that give it exactly: the line takes no rounding, so that the sum takes one.
std::optional<std::pair<AffineLine, AffineLine>> FindAffinePair(std::span<const double> exact,
                                                                CastTo to);

/// Pixels of a planar row that MakeRowAvx2 makes at a time.
inline constexpr std::int64_t kAvx2Pixels = 8;
/// Three channels with AVX2; float outputs. Returns the pixels made: the rest of the row is left.
std::int64_t MakeRowAvx2(const ByteRow& pixels, const AffineRow& affine, CastTo to, bool planar);

/// Three channels of uint8 into three planes, unchanged. Returns the pixels made.
std::int64_t SplitRowAvx2(const ByteRow& pixels);

/// Pixels of a planar row that MakeRowAvx512 makes at a time.
inline constexpr std::int64_t kAvx512Pixels = 64;
/// Three channels, any output, the whole row. Only where HasAvx512Shuffle.
void MakeRowAvx512(const ByteRow& pixels, const ByteTables& tables, CastTo to, bool planar);

}  // namespace patchbay::ops

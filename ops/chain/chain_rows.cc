#include "ops/chain/chain_rows.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <immintrin.h>

#include "ops/lanes/processor.h"

namespace patchbay::ops {
namespace {

int ElementBytes(CastTo to) {
  switch (to) {
    case CastTo::kUint8:
      return 1;
    case CastTo::kFloat16:
    case CastTo::kBfloat16:
      return 2;
    default:
      return 4;
  }
}

bool IsIdentity(std::span<const std::uint32_t> table, CastTo to) {
  if (to != CastTo::kUint8) return false;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] != i % kTableEntries) return false;
  }
  return true;
}

template <typename Value>
bool Gives(std::span<const std::uint32_t> table, CastTo to, const AffineChannel<Value>& k) {
  const auto same = [&](std::size_t x) {
    const Value value = std::fma(static_cast<Value>(x), k.slope, k.offset);
    return CastBits(static_cast<float>(value), to) == table[x];
  };
  // The ends first: that is where a wrong slope shows.
  if (!same(255) || !same(0)) return false;
  for (std::size_t x = 1; x < kTableEntries - 1; ++x) {
    if (!same(x)) return false;
  }
  return true;
}

template <typename Value>
Value Nudged(Value value, int ulps) {
  constexpr Value kUp = std::numeric_limits<Value>::infinity();
  for (; ulps > 0; --ulps) value = std::nextafter(value, kUp);
  for (; ulps < 0; ++ulps) value = std::nextafter(value, -kUp);
  return value;
}

template <typename Element>
void TableRow(const ByteRow& pixels, std::span<const std::uint32_t> table, int channels,
              bool planar, std::int64_t first) {
  const auto n = static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < n; ++c) {
    const std::uint32_t* entry = table.data() + c * kTableEntries;
    auto* out = reinterpret_cast<Element*>(planar ? pixels.out + static_cast<std::int64_t>(c) *
                                                                     pixels.plane_bytes
                                                  : pixels.out + c * sizeof(Element));
    const std::size_t step = planar ? 1 : n;
    const std::uint8_t* in = pixels.row + c;
    for (auto x = static_cast<std::size_t>(first); x < static_cast<std::size_t>(pixels.width);
         ++x) {
      const auto element = static_cast<Element>(entry[in[x * n]]);
      std::memcpy(out + x * step, &element, sizeof element);
    }
  }
}

}  // namespace

std::vector<std::uint32_t> TableOf(std::span<const double> exact, CastTo to) {
  std::vector<std::uint32_t> table;
  table.reserve(exact.size());
  for (const double value : exact) table.push_back(CastBits(static_cast<float>(value), to));
  return table;
}

template <typename Value>
std::optional<AffineChannel<Value>> FindAffine(std::span<const double> exact, CastTo to) {
  constexpr int kReach = 8;
  const std::vector<std::uint32_t> table = TableOf(exact, to);
  const auto slope = static_cast<Value>((exact[255] - exact[0]) / 255.0);
  const auto offset = static_cast<Value>(exact[0]);
  for (int i = 0; i <= 2 * kReach; ++i) {
    for (int j = 0; j <= 2 * kReach; ++j) {
      // 0, 1, -1, 2, -2, ...: the nearest candidates first.
      const int di = i % 2 != 0 ? (i + 1) / 2 : -i / 2, dj = j % 2 != 0 ? (j + 1) / 2 : -j / 2;
      const AffineChannel<Value> k{Nudged(slope, di), Nudged(offset, dj)};
      if (Gives(table, to, k)) return k;
    }
  }
  return std::nullopt;
}

template std::optional<AffineChannel<float>> FindAffine(std::span<const double>, CastTo);
template std::optional<AffineChannel<double>> FindAffine(std::span<const double>, CastTo);

namespace {

/// The lines of three channels in one arithmetic, or nothing.
template <typename Value>
bool FindLines(std::span<const double> exact, CastTo to,
               std::array<AffineChannel<Value>, 3>& lines) {
  for (std::size_t c = 0; c < 3; ++c) {
    const auto line = FindAffine<Value>(exact.subspan(c * kTableEntries, kTableEntries), to);
    if (!line) return false;
    lines[c] = *line;
  }
  return true;
}

}  // namespace

RowMaker::RowMaker(std::span<const double> exact, int channels, CastTo to, bool planar,
                   CpuLevel level)
    : table_(TableOf(exact, to)), channels_(channels), to_(to), planar_(planar) {
  if (IsIdentity(table_, to) && (!planar || channels == 1)) {
    path_ = Path::kCopy;
    return;
  }
  if (channels != 3 || level == CpuLevel::kTable) return;
  // Interleaved, a vector holds all three channels and would be looked up three times.
  if (!planar && to == CastTo::kFloat16 && FindLines(exact, to, affine_.in_float)) {
    path_ = Path::kAffine;
    return;
  }
  if (level == CpuLevel::kBest && HasAvx512Shuffle()) {
    for (std::size_t b = 0; b < 4; ++b) {
      for (std::size_t i = 0; i < 3 * kTableEntries; ++i) {
        bytes_.plane[b][i / kTableEntries][i % kTableEntries] =
            static_cast<std::uint8_t>(table_[i] >> (8 * b));
      }
    }
    path_ = Path::kShuffle;
    return;
  }
  if (to == CastTo::kUint8) {
    if (IsIdentity(table_, to)) path_ = Path::kSplit;
    return;
  }
  if (!FindLines(exact, to, affine_.in_float)) {
    affine_.wide = FindLines(exact, to, affine_.in_double);
    if (!affine_.wide) return;
  }
  path_ = Path::kAffine;
}

bool RowMaker::CanMirror(std::int64_t width) const {
  if (!planar_) return false;
  return (path_ == Path::kShuffle && width % kAvx512Pixels == 0) ||
         (path_ == Path::kAffine && width % kAvx2Pixels == 0);
}

std::string_view RowMaker::PathName() const {
  switch (path_) {
    case Path::kCopy:
      return "copy";
    case Path::kTable:
      return "table";
    case Path::kSplit:
      return "split";
    case Path::kAffine:
      return affine_.wide ? "affine64" : "affine";
    case Path::kShuffle:
      return "avx512vbmi";
  }
  return "";
}

void RowMaker::FinishStreaming() { _mm_sfence(); }

void RowMaker::MakeByTable(const ByteRow& pixels, std::int64_t first) const {
  switch (ElementBytes(to_)) {
    case 1:
      return TableRow<std::uint8_t>(pixels, table_, channels_, planar_, first);
    case 2:
      return TableRow<std::uint16_t>(pixels, table_, channels_, planar_, first);
    default:
      return TableRow<std::uint32_t>(pixels, table_, channels_, planar_, first);
  }
}

void RowMaker::Make(const ByteRow& pixels) const {
  switch (path_) {
    case Path::kCopy:
      std::memcpy(pixels.out, pixels.row, static_cast<std::size_t>(pixels.width * channels_));
      return;
    case Path::kSplit:
      return MakeByTable(pixels, SplitRowAvx2(pixels));
    case Path::kTable:
      return MakeByTable(pixels, 0);
    case Path::kAffine:
      return MakeByTable(pixels, MakeRowAvx2(pixels, affine_, to_, planar_));
    case Path::kShuffle:
      return MakeRowAvx512(pixels, bytes_, to_, planar_);
  }
}

}  // namespace patchbay::ops

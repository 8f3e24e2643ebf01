#include "ops/chain/chain_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include <immintrin.h>

#include "ops/lanes/processor.h"

namespace patchbay::ops {
namespace {

bool IsIdentity(std::span<const std::uint32_t> table, CastTo to) {
  if (to != CastTo::kUint8) return false;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] != i % kTableEntries) return false;
  }
  return true;
}

float At(const AffineLine& line, std::size_t x) {
  return std::fma(static_cast<float>(x), line.slope, line.offset);
}

/// Whether value(x) is rounded to the table's entry for every x.
template <typename ValueOf>
bool Gives(std::span<const std::uint32_t> table, CastTo to, ValueOf&& value) {
  const auto same = [&](std::size_t x) { return CastBits(value(x), to) == table[x]; };
  // The ends first: that is where a wrong slope shows.
  if (!same(255) || !same(0)) return false;
  for (std::size_t x = 1; x < kTableEntries - 1; ++x) {
    if (!same(x)) return false;
  }
  return true;
}

float Nudged(float value, int ulps) {
  constexpr float kUp = std::numeric_limits<float>::infinity();
  for (; ulps > 0; --ulps) value = std::nextafter(value, kUp);
  for (; ulps < 0; ++ulps) value = std::nextafter(value, -kUp);
  return value;
}

/// The first line near `about` that `is_good`, the nearest first.
template <typename IsGood>
std::optional<AffineLine> NearLine(const AffineLine& about, IsGood&& is_good) {
  constexpr int kReach = 8;
  for (int i = 0; i <= 2 * kReach; ++i) {
    for (int j = 0; j <= 2 * kReach; ++j) {
      // 0, 1, -1, 2, -2, ...
      const int di = i % 2 != 0 ? (i + 1) / 2 : -i / 2, dj = j % 2 != 0 ? (j + 1) / 2 : -j / 2;
      const AffineLine line{Nudged(about.slope, di), Nudged(about.offset, dj)};
      if (is_good(line)) return line;
    }
  }
  return std::nullopt;
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

std::optional<AffineLine> FindAffine(std::span<const double> exact, CastTo to) {
  const std::vector<std::uint32_t> table = TableOf(exact, to);
  const AffineLine about{static_cast<float>((exact[255] - exact[0]) / 255.0),
                         static_cast<float>(exact[0])};
  return NearLine(about, [&](const AffineLine& line) {
    return Gives(table, to, [&](std::size_t x) { return At(line, x); });
  });
}

std::optional<std::pair<AffineLine, AffineLine>> FindAffinePair(std::span<const double> exact,
                                                                CastTo to) {
  constexpr int kFloatBits = std::numeric_limits<float>::digits, kCoarser = 5;
  const std::vector<std::uint32_t> table = TableOf(exact, to);
  const double slope = (exact[255] - exact[0]) / 255.0, offset = exact[0];
  int exponent = 0;
  std::frexp(std::max(std::abs(exact[0]), std::abs(exact[255])), &exponent);
  for (int more = 0; more < kCoarser; ++more) {
    // Multiples of `step` below 2^exponent are floats, and so the line is exact.
    const double step = std::ldexp(1.0, exponent - kFloatBits + more);
    const double coarse_slope = std::nearbyint(slope / step) * step;
    const double coarse_offset = std::nearbyint(offset / step) * step;
    const AffineLine line{static_cast<float>(coarse_slope), static_cast<float>(coarse_offset)};
    const AffineLine about{static_cast<float>(slope - coarse_slope),
                           static_cast<float>(offset - coarse_offset)};
    const auto rest = NearLine(about, [&](const AffineLine& near) {
      return Gives(table, to, [&](std::size_t x) { return At(line, x) + At(near, x); });
    });
    if (rest) return std::pair(line, *rest);
  }
  return std::nullopt;
}

namespace {

/// The lines of three channels, or nothing.
bool FindLines(std::span<const double> exact, CastTo to, std::array<AffineLine, 3>& lines) {
  for (std::size_t c = 0; c < 3; ++c) {
    const auto line = FindAffine(exact.subspan(c * kTableEntries, kTableEntries), to);
    if (!line) return false;
    lines[c] = *line;
  }
  return true;
}

bool FindPairs(std::span<const double> exact, CastTo to, AffineRow& row) {
  for (std::size_t c = 0; c < 3; ++c) {
    const auto pair = FindAffinePair(exact.subspan(c * kTableEntries, kTableEntries), to);
    if (!pair) return false;
    std::tie(row.line[c], row.rest[c]) = *pair;
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
  if (!planar && to == CastTo::kFloat16 && FindLines(exact, to, affine_.line)) {
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
  if (!FindLines(exact, to, affine_.line)) {
    affine_.has_rest = FindPairs(exact, to, affine_);
    if (!affine_.has_rest) return;
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
      return affine_.has_rest ? "affine_pair" : "affine";
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

#include "runtime/format/zarr/codec/unshuffle.h"

#include <immintrin.h>

namespace patchbay::zarr {
namespace {

constexpr std::size_t kLanes = 32;

__m256i At(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
void Put(std::byte* to, __m256i lanes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), lanes);
}

/// Thirty-two elements of two bytes.
void UnshuffleLanes(const std::byte* low, const std::byte* high, std::byte* out) {
  const __m256i a = At(low), b = At(high);
  const __m256i even = _mm256_unpacklo_epi8(a, b), odd = _mm256_unpackhi_epi8(a, b);
  Put(out, _mm256_permute2x128_si256(even, odd, 0x20));
  Put(out + kLanes, _mm256_permute2x128_si256(even, odd, 0x31));
}

/// Sixteen of them, and eight.
void UnshuffleSixteen(const std::byte* low, const std::byte* high, std::byte* out) {
  const auto at = [](const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  auto* to = reinterpret_cast<__m128i*>(out);
  _mm_storeu_si128(to, _mm_unpacklo_epi8(at(low), at(high)));
  _mm_storeu_si128(to + 1, _mm_unpackhi_epi8(at(low), at(high)));
}
void UnshuffleEight(const std::byte* low, const std::byte* high, std::byte* out) {
  const auto at = [](const std::byte* from) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  };
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(at(low), at(high)));
}

/// Elements of two bytes, all of them where there are eight or more; how many that were.
inline std::size_t UnshufflePairs(const std::byte* low, const std::byte* high, std::size_t count,
                                  std::byte* out) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    UnshuffleLanes(low + i, high + i, out + 2 * i);
  }
  if (i + 16 <= count) {
    UnshuffleSixteen(low + i, high + i, out + 2 * i);
    i += 16;
  }
  if (i + 8 <= count) {
    UnshuffleEight(low + i, high + i, out + 2 * i);
    i += 8;
  }
  if (i == count || count < 8) return i;
  UnshuffleEight(low + count - 8, high + count - 8, out + 2 * (count - 8));  // some of them again
  return count;
}

/// The same of four bytes, whose planes lie `plane` bytes apart.
std::size_t UnshuffleFours(const std::byte* from, std::size_t plane, std::size_t count,
                           std::byte* out) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256i a = At(from + i), b = At(from + plane + i), c = At(from + 2 * plane + i),
                  d = At(from + 3 * plane + i);
    const __m256i ab_low = _mm256_unpacklo_epi8(a, b), ab_high = _mm256_unpackhi_epi8(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi8(c, d), cd_high = _mm256_unpackhi_epi8(c, d);
    const __m256i quarters[] = {
        _mm256_unpacklo_epi16(ab_low, cd_low), _mm256_unpackhi_epi16(ab_low, cd_low),
        _mm256_unpacklo_epi16(ab_high, cd_high), _mm256_unpackhi_epi16(ab_high, cd_high)};
    Put(out + 4 * i, _mm256_permute2x128_si256(quarters[0], quarters[1], 0x20));
    Put(out + 4 * i + kLanes, _mm256_permute2x128_si256(quarters[2], quarters[3], 0x20));
    Put(out + 4 * i + 2 * kLanes, _mm256_permute2x128_si256(quarters[0], quarters[1], 0x31));
    Put(out + 4 * i + 3 * kLanes, _mm256_permute2x128_si256(quarters[2], quarters[3], 0x31));
  }
  return i;
}

}  // namespace

void Unshuffle(const std::byte* planes, std::size_t elements, std::size_t element_bytes,
               std::size_t first, std::size_t count, std::byte* out) {
  const std::byte* from = planes + first;
  std::size_t i = 0;
  if (element_bytes == 2) i = UnshufflePairs(from, from + elements, count, out);
  if (element_bytes == 4) i = UnshuffleFours(from, elements, count, out);
  for (; i < count; ++i) {
    for (std::size_t b = 0; b < element_bytes; ++b) {
      out[i * element_bytes + b] = from[b * elements + i];
    }
  }
}

void UnshuffleBox(const CopyPlan& plan, const std::byte* planes, std::size_t elements,
                  std::size_t first, std::byte* out) {
  const std::size_t size = plan.element_bytes;
  const auto count = static_cast<std::size_t>(plan.shape[static_cast<std::size_t>(plan.rank - 1)]);
  const auto copy = [&](const auto& line) {
    ForEachLine(plan, [&](std::int64_t from, std::int64_t to) {
      // The lines of a box lie too far apart for the processor to see the next one coming: ask for
      // the line one step further along the slowest axis.
      const std::byte* next = out + to + plan.to_stride[0];
      __builtin_prefetch(next, 1);
      __builtin_prefetch(next + count * size - 1, 1);
      line(first + static_cast<std::size_t>(from) / size, out + to);
    });
  };
  const std::byte* high = planes + elements;
  if (size == 2 && count == kLanes) {
    copy([&](std::size_t at, std::byte* to) { UnshuffleLanes(planes + at, high + at, to); });
  } else if (size == 2 && count >= 8) {
    copy([&](std::size_t at, std::byte* to) { UnshufflePairs(planes + at, high + at, count, to); });
  } else {
    copy([&](std::size_t at, std::byte* to) { Unshuffle(planes, elements, size, at, count, to); });
  }
}

}  // namespace patchbay::zarr

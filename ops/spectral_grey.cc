// Interleaved colours to what spectral analyses. Integers, so vectors give the same bits.
#include <array>

#include <immintrin.h>

#include "ops/grey_math.h"
#include "ops/spectral_frames.h"

namespace patchbay::ops {
namespace {

/// Bytes of four pixels as pairs of 16 bits: (red, green) or (blue, 0) of each.
constexpr std::uint8_t kNone = 0x80;
alignas(16) constexpr std::uint8_t kRedGreen[16] = {0, kNone, 1, kNone, 3, kNone, 4,  kNone,
                                                    6, kNone, 7, kNone, 9, kNone, 10, kNone};
alignas(16) constexpr std::uint8_t kBlue[16] = {2, kNone, kNone, kNone, 5,  kNone, kNone, kNone,
                                                8, kNone, kNone, kNone, 11, kNone, kNone, kNone};

inline __m128i Load(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// Greys of eight pixels, 32 bits each. Reads four bytes beyond them.
inline __m256i EightGreys(const std::uint8_t* rgb) {
  const __m256i pixels = _mm256_set_m128i(Load(rgb + 12), Load(rgb));
  const auto pick = [&](const std::uint8_t* bytes) {
    return _mm256_shuffle_epi8(pixels, _mm256_broadcastsi128_si256(Load(bytes)));
  };
  const __m256i red_green =
      _mm256_madd_epi16(pick(kRedGreen), _mm256_set1_epi32(19'235 << 16 | 9'798));
  const __m256i blue = _mm256_madd_epi16(pick(kBlue), _mm256_set1_epi32(3'735));
  const __m256i half = _mm256_set1_epi32(16'384);
  return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(red_green, blue), half), 15);
}

/// Where byte x of channel c of 16 pixels lies in the part-th 16 bytes of them, or kNone.
constexpr std::array<std::uint8_t, 16> PartOf(int c, int part) {
  std::array<std::uint8_t, 16> bytes{};
  for (int x = 0; x < 16; ++x) {
    const int at = 3 * x + c - 16 * part;
    bytes[static_cast<std::size_t>(x)] = at >= 0 && at < 16 ? static_cast<std::uint8_t>(at) : kNone;
  }
  return bytes;
}
constexpr std::array<std::uint8_t, 16> kParts[3][3] = {{PartOf(0, 0), PartOf(0, 1), PartOf(0, 2)},
                                                       {PartOf(1, 0), PartOf(1, 1), PartOf(1, 2)},
                                                       {PartOf(2, 0), PartOf(2, 1), PartOf(2, 2)}};

}  // namespace

void GreyOfRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey) {
  constexpr std::int64_t kAtOnce = 32, kReadBeyond = 2;  // pixels
  std::int64_t i = 0;
  for (; i + kAtOnce + kReadBeyond <= pixels; i += kAtOnce) {
    const std::uint8_t* from = rgb + 3 * i;
    const __m256i first = _mm256_packus_epi32(EightGreys(from), EightGreys(from + 24));
    const __m256i second = _mm256_packus_epi32(EightGreys(from + 48), EightGreys(from + 72));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(grey + i),
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order));
  }
  for (; i < pixels; ++i) {
    grey[i] = static_cast<std::uint8_t>(GreyOf(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
  }
}

void SplitRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* red, std::uint8_t* green,
              std::uint8_t* blue) {
  std::uint8_t* const planes[3] = {red, green, blue};
  std::int64_t i = 0;
  for (; i + 16 <= pixels; i += 16) {
    const __m128i from[3] = {Load(rgb + 3 * i), Load(rgb + 3 * i + 16), Load(rgb + 3 * i + 32)};
    for (int c = 0; c < 3; ++c) {
      __m128i channel = _mm_setzero_si128();
      for (int part = 0; part < 3; ++part) {
        channel = _mm_or_si128(channel, _mm_shuffle_epi8(from[part], Load(kParts[c][part].data())));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes[c] + i), channel);
    }
  }
  for (; i < pixels; ++i) {
    for (int c = 0; c < 3; ++c) planes[c][i] = rgb[3 * i + c];
  }
}

}  // namespace patchbay::ops

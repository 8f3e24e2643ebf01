// Converts interleaved colours to the values that spectral analyses: in whole vectors up to the
// rows' ends, the rest pixel by pixel. All integers, so every path gives the same.
#include <immintrin.h>

#include "ops/colour/grey_math.h"
#include "ops/spectral/spectral_frames.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kPixels = 16;  // pixels of a step
/// Four pixels are loaded as 16 bytes, the last four of which are the next pixels': a step reads
/// that many pixels beyond its own.
constexpr std::int64_t kBeyond = 2;
/// The weights of GreyOf.
constexpr int kRed = 9798, kGreen = 19235, kBlue = 3735, kShift = 15;

__m256i TwoFours(const std::uint8_t* rgb) {
  const auto* low = reinterpret_cast<const __m128i*>(rgb);
  const auto* high = reinterpret_cast<const __m128i*>(rgb + 12);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                 _mm_loadu_si128(high), 1);
}

/// Eight pixels: sums of products of 16 bits, exact in 32.
__m256i GreyOfEight(const std::uint8_t* rgb) {
  const __m256i red_green = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1));
  const __m256i blue = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1));
  const __m256i x = TwoFours(rgb);
  const __m256i two =
      _mm256_madd_epi16(_mm256_shuffle_epi8(x, red_green), _mm256_set1_epi32(kRed | kGreen << 16));
  const __m256i third = _mm256_madd_epi16(_mm256_shuffle_epi8(x, blue), _mm256_set1_epi32(kBlue));
  const __m256i sum =
      _mm256_add_epi32(_mm256_add_epi32(two, third), _mm256_set1_epi32(1 << (kShift - 1)));
  return _mm256_srli_epi32(sum, kShift);
}

void GreyOfSixteen(const std::uint8_t* rgb, std::uint8_t* grey) {
  const __m256i words = _mm256_packus_epi32(GreyOfEight(rgb), GreyOfEight(rgb + 24));
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m128i sorted =
      _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(grey), sorted);
}

/// Where byte i of a channel of sixteen pixels lies in each of the three vectors that hold them;
/// -1 where it is in another.
struct Picks {
  alignas(16) std::int8_t at[3][3][kPixels];  ///< [channel][vector]
};

constexpr Picks MakePicks() {
  Picks picks{};
  for (int channel = 0; channel < 3; ++channel) {
    for (int part = 0; part < 3; ++part) {
      for (int i = 0; i < kPixels; ++i) {
        const int at = 3 * i + channel - 16 * part;
        picks.at[channel][part][i] = static_cast<std::int8_t>(at >= 0 && at < 16 ? at : -1);
      }
    }
  }
  return picks;
}

constexpr Picks kPicks = MakePicks();

void ChannelOfSixteen(const __m128i (&x)[3], int channel, std::uint8_t* out) {
  __m128i all = _mm_setzero_si128();
  for (int part = 0; part < 3; ++part) {
    const auto* picks = reinterpret_cast<const __m128i*>(kPicks.at[channel][part]);
    all = _mm_or_si128(all, _mm_shuffle_epi8(x[part], _mm_load_si128(picks)));
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
}

}  // namespace

void GreyOfRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey) {
  std::int64_t i = 0;
  for (; i + kPixels + kBeyond <= pixels; i += kPixels) GreyOfSixteen(rgb + 3 * i, grey + i);
  for (; i < pixels; ++i) {
    grey[i] = static_cast<std::uint8_t>(GreyOf(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
  }
}

void SplitRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* red, std::uint8_t* green,
              std::uint8_t* blue) {
  std::int64_t i = 0;
  for (; i + kPixels <= pixels; i += kPixels) {
    const auto* at = reinterpret_cast<const __m128i*>(rgb + 3 * i);
    const __m128i x[3] = {_mm_loadu_si128(at), _mm_loadu_si128(at + 1), _mm_loadu_si128(at + 2)};
    ChannelOfSixteen(x, 0, red + i);
    ChannelOfSixteen(x, 1, green + i);
    ChannelOfSixteen(x, 2, blue + i);
  }
  for (; i < pixels; ++i) {
    red[i] = rgb[3 * i];
    green[i] = rgb[3 * i + 1];
    blue[i] = rgb[3 * i + 2];
  }
}

}  // namespace patchbay::ops

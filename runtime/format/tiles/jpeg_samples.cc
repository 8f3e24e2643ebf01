#include "runtime/format/tiles/jpeg_samples.h"

#include <array>

#include <immintrin.h>

namespace patchbay::tiles {
namespace {

constexpr int kLanes = 16;

/// Fixed-point constants of the transform have so many bits behind the point, the values between
/// its two passes so many.
constexpr int kConstantBits = 13, kPassBits = 2;

constexpr std::int16_t Fixed(double value) {
  const double scaled = value * (1 << kConstantBits);
  return static_cast<std::int16_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

/// Rounded as one number, as their sum is used beside either.
constexpr std::int16_t k0541 = Fixed(0.541196100), k0765 = Fixed(0.765366865),
                       k1847 = Fixed(1.847759065), k1175 = Fixed(1.175875602),
                       k1961 = Fixed(1.961570560), k0390 = Fixed(0.390180644),
                       k0298 = Fixed(0.298631336), k0899 = Fixed(0.899976223),
                       k1501 = Fixed(1.501321110), k2053 = Fixed(2.053119869),
                       k2562 = Fixed(2.562915447), k3072 = Fixed(3.072711026);

/// Sixteen sums of 32 bits, in the two halves that unpacking makes.
struct Sums {
  __m256i low, high;
};

inline Sums operator+(const Sums& a, const Sums& b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline Sums operator-(const Sums& a, const Sums& b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

/// A pair of 16-bit values, side by side for multiplying.
struct Sides {
  __m256i low, high;
};
inline Sides Beside(__m256i a, __m256i b) {
  return {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}
/// a * x + b * y of the values put beside each other.
inline Sums Weighed(const Sides& sides, int x, int y) {
  const __m256i factors =
      _mm256_set1_epi32(static_cast<int>((static_cast<unsigned>(y) << 16) | (x & 0xFFFF)));
  return {_mm256_madd_epi16(sides.low, factors), _mm256_madd_epi16(sides.high, factors)};
}

/// A value of 16 bits in the upper half of 32, less the bits of the constants.
inline Sums Scaled(__m256i value) {
  const __m256i zero = _mm256_setzero_si256();
  return {_mm256_srai_epi32(_mm256_unpacklo_epi16(zero, value), 16 - kConstantBits),
          _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, value), 16 - kConstantBits)};
}

template <int kShift>
inline __m256i Rounded(const Sums& sums) {
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(sums.low, half), kShift),
                            _mm256_srai_epi32(_mm256_add_epi32(sums.high, half), kShift));
}

/// One pass over the rows `r`, each of two blocks: the even ones, then the odd ones.
template <int kShift>
inline void Pass(__m256i (&r)[8]) {
  const Sides two_six = Beside(r[2], r[6]);
  const Sums even2 = Weighed(two_six, k0541, k0541 - k1847);
  const Sums even3 = Weighed(two_six, k0541 + k0765, k0541);
  const Sums even0 = Scaled(_mm256_add_epi16(r[0], r[4]));
  const Sums even1 = Scaled(_mm256_sub_epi16(r[0], r[4]));
  const Sums outer0 = even0 + even3, outer3 = even0 - even3;
  const Sums outer1 = even1 + even2, outer2 = even1 - even2;

  const Sides sums = Beside(_mm256_add_epi16(r[7], r[3]), _mm256_add_epi16(r[5], r[1]));
  const Sums z3 = Weighed(sums, k1175 - k1961, k1175);
  const Sums z4 = Weighed(sums, k1175, k1175 - k0390);
  const Sides seven_one = Beside(r[7], r[1]), five_three = Beside(r[5], r[3]);
  const Sums odd0 = Weighed(seven_one, k0298 - k0899, -k0899) + z3;
  const Sums odd3 = Weighed(seven_one, -k0899, k1501 - k0899) + z4;
  const Sums odd1 = Weighed(five_three, k2053 - k2562, -k2562) + z4;
  const Sums odd2 = Weighed(five_three, -k2562, k3072 - k2562) + z3;

  r[0] = Rounded<kShift>(outer0 + odd3);
  r[7] = Rounded<kShift>(outer0 - odd3);
  r[1] = Rounded<kShift>(outer1 + odd2);
  r[6] = Rounded<kShift>(outer1 - odd2);
  r[2] = Rounded<kShift>(outer2 + odd1);
  r[5] = Rounded<kShift>(outer2 - odd1);
  r[3] = Rounded<kShift>(outer3 + odd0);
  r[4] = Rounded<kShift>(outer3 - odd0);
}

/// Rows to columns, in each block.
inline void Transpose(__m256i (&r)[8]) {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 2; ++i) {
      b[4 * half + 2 * i] = _mm256_unpacklo_epi32(a[4 * half + i], a[4 * half + 2 + i]);
      b[4 * half + 2 * i + 1] = _mm256_unpackhi_epi32(a[4 * half + i], a[4 * half + 2 + i]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
    r[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
  }
}

inline __m256i Both(const std::int16_t* first, const std::int16_t* second) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(first))),
      _mm_load_si128(reinterpret_cast<const __m128i*>(second)), 1);
}

/// For each of the 16 bytes of part `part` of 16 interleaved pixels, which pixel of plane `c` it is
/// of; the high bit, which a shuffle turns to 0, where it is of another plane.
constexpr std::array<std::uint8_t, kLanes> PlacesOf(int c, int part) {
  std::array<std::uint8_t, kLanes> places{};
  for (int i = 0; i < kLanes; ++i) {
    const int at = part * kLanes + i;
    places[static_cast<std::size_t>(i)] =
        at % 3 == c ? static_cast<std::uint8_t>(at / 3) : std::uint8_t{0x80};
  }
  return places;
}
constexpr std::array<std::uint8_t, kLanes> kPlaces[3][3] = {
    {PlacesOf(0, 0), PlacesOf(0, 1), PlacesOf(0, 2)},
    {PlacesOf(1, 0), PlacesOf(1, 1), PlacesOf(1, 2)},
    {PlacesOf(2, 0), PlacesOf(2, 1), PlacesOf(2, 2)}};

inline __m128i Load(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
inline void Store(std::uint8_t* at, __m128i bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), bytes);
}

/// Doubles 16 samples: `left`, `middle` and `right` are 16 of them, weighed as `kShift` says.
template <int kShift, int kEvenHalf, int kOddHalf>
inline void StoreDoubled(__m256i left, __m256i middle, __m256i right, std::uint8_t* out) {
  const __m256i three = _mm256_add_epi16(middle, _mm256_slli_epi16(middle, 1));
  const __m256i even = _mm256_srli_epi16(
      _mm256_add_epi16(_mm256_add_epi16(three, left), _mm256_set1_epi16(kEvenHalf)), kShift);
  const __m256i odd = _mm256_srli_epi16(
      _mm256_add_epi16(_mm256_add_epi16(three, right), _mm256_set1_epi16(kOddHalf)), kShift);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

inline __m256i Widened(const std::uint8_t* at) { return _mm256_cvtepu8_epi16(Load(at)); }

/// Three parts of `near` and one of `far`.
inline __m256i Between(const std::uint8_t* near, const std::uint8_t* far) {
  const __m256i a = Widened(near);
  return _mm256_add_epi16(_mm256_add_epi16(a, _mm256_slli_epi16(a, 1)), Widened(far));
}

/// value * factor / 2^16, rounded.
inline __m256i Product(__m256i value, int factor) {
  const __m256i doubled = _mm256_mulhi_epi16(_mm256_slli_epi16(value, 1),
                                             _mm256_set1_epi16(static_cast<std::int16_t>(factor)));
  return _mm256_srai_epi16(_mm256_add_epi16(doubled, _mm256_set1_epi16(1)), 1);
}

inline void StorePacked(std::uint8_t* at, __m256i values) {
  Store(at, _mm_packus_epi16(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1)));
}

}  // namespace

void TransformPair(const BlockPair& blocks, const std::int16_t* steps, std::uint8_t* out,
                   std::ptrdiff_t stride) {
  __m256i r[8];
  __m256i others = _mm256_setzero_si256();
  for (int i = 0; i < 8; ++i) {
    const __m256i row = Both(blocks.value[0] + 8 * i, blocks.value[1] + 8 * i);
    if (i > 0) others = _mm256_or_si256(others, row);
    r[i] = _mm256_mullo_epi16(row, Both(steps + 8 * i, steps + 8 * i));
  }
  // A block of one row of coefficients overflows otherwise than one of several.
  const __m256i single = _mm256_slli_epi16(r[0], kPassBits);
  const int full = _mm256_movemask_epi8(_mm256_cmpeq_epi8(others, _mm256_setzero_si256()));
  Pass<kConstantBits - kPassBits>(r);
  const bool is_single[2] = {(full & 0xFFFF) == 0xFFFF,
                             (static_cast<unsigned>(full) >> 16) == 0xFFFF};
  if (is_single[0] || is_single[1]) {
    const int first = is_single[0] ? -1 : 0, second = is_single[1] ? -1 : 0;
    const __m256i lanes =
        _mm256_setr_epi32(first, first, first, first, second, second, second, second);
    for (auto& row : r) row = _mm256_blendv_epi8(row, single, lanes);
  }
  Transpose(r);
  Pass<kConstantBits + kPassBits + 3>(r);
  Transpose(r);
  const __m256i middle = _mm256_set1_epi8(static_cast<char>(0x80));
  for (int i = 0; i < 8; i += 2) {
    const __m256i bytes =
        _mm256_permute4x64_epi64(_mm256_add_epi8(_mm256_packs_epi16(r[i], r[i + 1]), middle), 0xD8);
    Store(out + i * stride, _mm256_castsi256_si128(bytes));
    Store(out + (i + 1) * stride, _mm256_extracti128_si256(bytes, 1));
  }
}

void FillPair(const BlockPair& blocks, const std::int16_t* steps, std::uint8_t* out,
              std::ptrdiff_t stride) {
  std::uint64_t value[2];
  for (int i = 0; i < 2; ++i) {
    const auto step = static_cast<std::int16_t>(blocks.value[i][0] * steps[0] * (1 << kPassBits));
    const int sample = (step + (1 << (kPassBits + 2))) >> (kPassBits + 3);
    const int clamped = sample < -128 ? 0 : sample > 127 ? 255 : sample + 128;
    value[i] = static_cast<std::uint64_t>(clamped) * 0x0101010101010101u;
  }
  const __m128i row =
      _mm_set_epi64x(static_cast<long long>(value[1]), static_cast<long long>(value[0]));
  for (int i = 0; i < 8; ++i) Store(out + i * stride, row);
}

void DoubleColumns(const std::uint8_t* row, std::int64_t samples, std::uint8_t* out) {
  for (std::int64_t i = 0; i < samples; i += kLanes) {
    StoreDoubled<2, 1, 2>(Widened(row + i - 1), Widened(row + i), Widened(row + i + 1),
                          out + 2 * i);
  }
}

void DoubleColumnsBetween(const std::uint8_t* near, const std::uint8_t* far, std::int64_t samples,
                          std::uint8_t* out) {
  for (std::int64_t i = 0; i < samples; i += kLanes) {
    StoreDoubled<4, 8, 7>(Between(near + i - 1, far + i - 1), Between(near + i, far + i),
                          Between(near + i + 1, far + i + 1), out + 2 * i);
  }
}

void ToRgb(std::uint8_t* first, std::uint8_t* second, std::uint8_t* third, std::int64_t pixels) {
  // Factors less whole parts, so that they have 16 bits: 1.402, 1.772, 0.34414 and 0.71414.
  constexpr int kRed = 91881 - 65536, kBlue = 116130 - 131072, kGreenBlue = -22554;
  constexpr int kGreenRed = 65536 - 46802;
  const __m256i middle = _mm256_set1_epi16(128);
  for (std::int64_t i = 0; i < pixels; i += kLanes) {
    const __m256i y = Widened(first + i);
    const __m256i cb = _mm256_sub_epi16(Widened(second + i), middle);
    const __m256i cr = _mm256_sub_epi16(Widened(third + i), middle);
    const __m256i red = _mm256_add_epi16(cr, Product(cr, kRed));
    const __m256i blue = _mm256_add_epi16(_mm256_slli_epi16(cb, 1), Product(cb, kBlue));
    const Sums sums = Weighed(Beside(cb, cr), kGreenBlue, kGreenRed);
    const __m256i green = _mm256_sub_epi16(Rounded<16>(sums), cr);
    StorePacked(first + i, _mm256_add_epi16(y, red));
    StorePacked(second + i, _mm256_add_epi16(y, green));
    StorePacked(third + i, _mm256_add_epi16(y, blue));
  }
}

void InterleaveRow(const std::uint8_t* first, const std::uint8_t* second, const std::uint8_t* third,
                   std::int64_t pixels, std::uint8_t* out) {
  std::int64_t x = 0;
  for (; x + kLanes <= pixels; x += kLanes) {
    const __m128i planes[3] = {Load(first + x), Load(second + x), Load(third + x)};
    for (int part = 0; part < 3; ++part) {
      __m128i bytes = _mm_shuffle_epi8(planes[0], Load(kPlaces[0][part].data()));
      for (int c = 1; c < 3; ++c) {
        bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(planes[c], Load(kPlaces[c][part].data())));
      }
      Store(out + 3 * x + part * kLanes, bytes);
    }
  }
  for (; x < pixels; ++x) {
    out[3 * x] = first[x];
    out[3 * x + 1] = second[x];
    out[3 * x + 2] = third[x];
  }
}

}  // namespace patchbay::tiles

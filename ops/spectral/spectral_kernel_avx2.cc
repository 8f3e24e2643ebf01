// The kernel eight values at a time.
#include <immintrin.h>

#include "ops/spectral/spectral_variant.h"

namespace patchbay::ops {
namespace {

struct Avx2Lanes {
  static constexpr int kLanes = 8;
  struct Whole;
  struct Squares;
  __m256 v;

  static PB_INLINE Avx2Lanes All(float x) { return {_mm256_set1_ps(x)}; }
  static PB_INLINE Avx2Lanes Load(const float* at) { return {_mm256_loadu_ps(at)}; }
  static PB_INLINE Avx2Lanes LoadBytes(const std::uint8_t* at) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))};
  }
  PB_INLINE void Store(float* at) const { _mm256_storeu_ps(at, v); }
  PB_INLINE __m128 Low() const { return _mm256_castps256_ps128(v); }
  PB_INLINE __m128 High() const { return _mm256_extractf128_ps(v, 1); }
  PB_INLINE void AddTo(double* at) const {
    _mm256_storeu_pd(at, _mm256_add_pd(_mm256_loadu_pd(at), _mm256_cvtps_pd(Low())));
    _mm256_storeu_pd(at + 4, _mm256_add_pd(_mm256_loadu_pd(at + 4), _mm256_cvtps_pd(High())));
  }
  PB_INLINE void AddRoundedTo(std::uint64_t* at) const;
  PB_INLINE float First() const { return _mm256_cvtss_f32(v); }
  PB_INLINE float Largest() const {
    const __m128 four = _mm_max_ps(Low(), High());
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  static PB_INLINE void Transpose(const float* in, float* out, int out_stride);
};

PB_INLINE Avx2Lanes operator+(Avx2Lanes a, Avx2Lanes b) { return {_mm256_add_ps(a.v, b.v)}; }
PB_INLINE Avx2Lanes operator-(Avx2Lanes a, Avx2Lanes b) { return {_mm256_sub_ps(a.v, b.v)}; }
PB_INLINE Avx2Lanes operator*(Avx2Lanes a, Avx2Lanes b) { return {_mm256_mul_ps(a.v, b.v)}; }
PB_INLINE Avx2Lanes Max(Avx2Lanes a, Avx2Lanes b) { return {_mm256_max_ps(a.v, b.v)}; }
PB_INLINE Avx2Lanes FusedAdd(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
PB_INLINE Avx2Lanes FusedSubtract(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
  return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
}

PB_INLINE __m256i Load64(const std::uint64_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
PB_INLINE void AddTo64(std::uint64_t* at, __m256i x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), _mm256_add_epi64(Load64(at), x));
}
PB_INLINE std::uint64_t Sum64(__m256i x) {
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(two)) +
         static_cast<std::uint64_t>(_mm_extract_epi64(two, 1));
}

/// AVX2 converts to 32 bits only. From 2^23 on a float is a whole number: its mantissa, shifted.
PB_INLINE void Avx2Lanes::AddRoundedTo(std::uint64_t* at) const {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i mantissa = _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFF)),
                                           _mm256_set1_epi32(0x800000));
  const __m256i shift = _mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(127 + 23));
  const __m256i is_large = _mm256_cmpgt_epi32(shift, _mm256_set1_epi32(-1));
  const __m256i small = _mm256_andnot_si256(is_large, _mm256_cvtps_epi32(v));
  const __m256i large = _mm256_and_si256(is_large, mantissa);
  for (int half = 0; half < 2; ++half) {
    const auto wide = [half](__m256i x) PB_INLINED {
      return _mm256_cvtepu32_epi64(half == 0 ? _mm256_castsi256_si128(x)
                                             : _mm256_extracti128_si256(x, 1));
    };
    AddTo64(at + 4 * half,
            _mm256_or_si256(_mm256_sllv_epi64(wide(large), wide(shift)), wide(small)));
  }
}

/// Eight by eight: pairs of rows, pairs of pairs, then halves of a register; four times.
PB_INLINE void Avx2Lanes::Transpose(const float* in, float* out, int out_stride) {
  for (int row = 0; row < kSpectralLanes; row += 8) {
    for (int column = 0; column < kSpectralLanes; column += 8) {
      const float* from = in + row * kSpectralLanes + column;
      float* to = out + column * out_stride + row;
      __m256 a[8], b[8];
      Unrolled<4>([&](auto i) PB_INLINED {
        constexpr int r = 2 * decltype(i)::value;
        const __m256 x = _mm256_load_ps(from + r * kSpectralLanes);
        const __m256 y = _mm256_load_ps(from + (r + 1) * kSpectralLanes);
        a[r] = _mm256_unpacklo_ps(x, y);
        a[r + 1] = _mm256_unpackhi_ps(x, y);
      });
      Unrolled<2>([&](auto i) PB_INLINED {
        constexpr int r = 4 * decltype(i)::value;
        b[r] = _mm256_shuffle_ps(a[r], a[r + 2], 0x44);
        b[r + 1] = _mm256_shuffle_ps(a[r], a[r + 2], 0xEE);
        b[r + 2] = _mm256_shuffle_ps(a[r + 1], a[r + 3], 0x44);
        b[r + 3] = _mm256_shuffle_ps(a[r + 1], a[r + 3], 0xEE);
      });
      Unrolled<4>([&](auto i) PB_INLINED {
        constexpr int c = decltype(i)::value;
        _mm256_store_ps(to + c * out_stride, _mm256_permute2f128_ps(b[c], b[4 + c], 0x20));
        _mm256_store_ps(to + (4 + c) * out_stride, _mm256_permute2f128_ps(b[c], b[4 + c], 0x31));
      });
    }
  }
}

struct Avx2Lanes::Whole {
  __m256i v;

  static PB_INLINE Whole All(std::int32_t x) { return {_mm256_set1_epi32(x)}; }
  static PB_INLINE Whole BitsOf(Avx2Lanes x) { return {_mm256_castps_si256(x.v)}; }
  static PB_INLINE Whole Nearest(Avx2Lanes x) { return {_mm256_cvtps_epi32(x.v)}; }
  PB_INLINE Avx2Lanes AsBits() const { return {_mm256_castsi256_ps(v)}; }
  PB_INLINE Avx2Lanes ToFloat() const { return {_mm256_cvtepi32_ps(v)}; }
  PB_INLINE Whole ShiftedRight(int bits) const { return {_mm256_srai_epi32(v, bits)}; }
  PB_INLINE Whole ShiftedLeft(int bits) const { return {_mm256_slli_epi32(v, bits)}; }
  PB_INLINE void Store(std::uint32_t* at) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v);
  }
  PB_INLINE __m128i Low() const { return _mm256_castsi256_si128(v); }
  PB_INLINE __m128i High() const { return _mm256_extracti128_si256(v, 1); }
  PB_INLINE void StoreShort(std::uint16_t* at) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm_packus_epi32(Low(), High()));
  }
  PB_INLINE void AddTo(std::uint32_t* at) const {
    auto* place = reinterpret_cast<__m256i*>(at);
    _mm256_storeu_si256(place, _mm256_add_epi32(_mm256_loadu_si256(place), v));
  }
  PB_INLINE void AddSquaresTo(std::uint64_t* at) const {
    const __m256i low = _mm256_cvtepu32_epi64(Low()), high = _mm256_cvtepu32_epi64(High());
    AddTo64(at, _mm256_mul_epu32(low, low));
    AddTo64(at + 4, _mm256_mul_epu32(high, high));
  }
  PB_INLINE std::uint64_t Total() const {
    return Sum64(_mm256_add_epi64(_mm256_cvtepu32_epi64(Low()), _mm256_cvtepu32_epi64(High())));
  }
};

PB_INLINE Avx2Lanes::Whole operator+(Avx2Lanes::Whole a, Avx2Lanes::Whole b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
PB_INLINE Avx2Lanes::Whole operator-(Avx2Lanes::Whole a, Avx2Lanes::Whole b) {
  return {_mm256_sub_epi32(a.v, b.v)};
}

struct Avx2Lanes::Squares {
  __m256i even = _mm256_setzero_si256(), odd = _mm256_setzero_si256();

  PB_INLINE void Add(Whole q) {
    const __m256i high = _mm256_srli_epi64(q.v, 32);
    even = _mm256_add_epi64(even, _mm256_mul_epu32(q.v, q.v));
    odd = _mm256_add_epi64(odd, _mm256_mul_epu32(high, high));
  }
  PB_INLINE std::uint64_t Total() const { return Sum64(_mm256_add_epi64(even, odd)); }
};

}  // namespace

SpectralKernel Avx2SpectralKernel(int frame, bool hann) { return KernelOf<Avx2Lanes>(frame, hann); }

}  // namespace patchbay::ops

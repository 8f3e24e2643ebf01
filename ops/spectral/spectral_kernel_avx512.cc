// The kernel sixteen values at a time. Everything of the standard library is included before the
// target changes, so that no function shared with other files is compiled for AVX-512.
#include <immintrin.h>

#include "ops/spectral/spectral_kernel.h"

// GCC 12 takes the don't-care operands of its own intrinsics for uninitialised values.
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")
#endif

#include "ops/spectral/spectral_variant.h"

namespace patchbay::ops {
namespace {

struct Avx512Lanes {
  static constexpr int kLanes = 16;
  struct Whole;
  struct Squares;
  __m512 v;

  static PB_INLINE Avx512Lanes All(float x) { return {_mm512_set1_ps(x)}; }
  static PB_INLINE Avx512Lanes Load(const float* at) { return {_mm512_loadu_ps(at)}; }
  static PB_INLINE Avx512Lanes LoadBytes(const std::uint8_t* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
  }
  PB_INLINE void Store(float* at) const { _mm512_storeu_ps(at, v); }
  PB_INLINE __m256 Low() const { return _mm512_castps512_ps256(v); }
  PB_INLINE __m256 High() const { return _mm512_extractf32x8_ps(v, 1); }
  PB_INLINE void AddTo(double* at) const {
    _mm512_storeu_pd(at, _mm512_add_pd(_mm512_loadu_pd(at), _mm512_cvtps_pd(Low())));
    _mm512_storeu_pd(at + 8, _mm512_add_pd(_mm512_loadu_pd(at + 8), _mm512_cvtps_pd(High())));
  }
  PB_INLINE void AddRoundedTo(std::uint64_t* at) const {
    _mm512_storeu_si512(at, _mm512_add_epi64(_mm512_loadu_si512(at), _mm512_cvtps_epi64(Low())));
    _mm512_storeu_si512(at + 8,
                        _mm512_add_epi64(_mm512_loadu_si512(at + 8), _mm512_cvtps_epi64(High())));
  }
  PB_INLINE float First() const { return _mm512_cvtss_f32(v); }
  PB_INLINE float Largest() const { return _mm512_reduce_max_ps(v); }
  static PB_INLINE void Transpose(const float* in, float* out, int out_stride);
};

PB_INLINE Avx512Lanes operator+(Avx512Lanes a, Avx512Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
PB_INLINE Avx512Lanes operator-(Avx512Lanes a, Avx512Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
PB_INLINE Avx512Lanes operator*(Avx512Lanes a, Avx512Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
PB_INLINE Avx512Lanes Max(Avx512Lanes a, Avx512Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
PB_INLINE Avx512Lanes FusedAdd(Avx512Lanes a, Avx512Lanes b, Avx512Lanes c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
PB_INLINE Avx512Lanes FusedSubtract(Avx512Lanes a, Avx512Lanes b, Avx512Lanes c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}

PB_INLINE __m512 LowPairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
PB_INLINE __m512 HighPairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

/// Four rounds: pairs of rows, pairs of pairs, then whole quarters of a register.
PB_INLINE void Avx512Lanes::Transpose(const float* in, float* out, int out_stride) {
  __m512 a[16], b[16];
  Unrolled<8>([&](auto i) PB_INLINED {
    constexpr int r = 2 * decltype(i)::value;
    const __m512 x = _mm512_load_ps(in + r * 16), y = _mm512_load_ps(in + (r + 1) * 16);
    a[r] = _mm512_unpacklo_ps(x, y);
    a[r + 1] = _mm512_unpackhi_ps(x, y);
  });
  Unrolled<4>([&](auto i) PB_INLINED {
    constexpr int r = 4 * decltype(i)::value;
    b[r] = LowPairs(a[r], a[r + 2]);
    b[r + 1] = HighPairs(a[r], a[r + 2]);
    b[r + 2] = LowPairs(a[r + 1], a[r + 3]);
    b[r + 3] = HighPairs(a[r + 1], a[r + 3]);
  });
  Unrolled<4>(
      [&](auto i) PB_INLINED {  // b[4 r + c]: column c of every quarter, rows 4 r to 4 r + 3
        constexpr int c = decltype(i)::value;
        const __m512 even_low = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x88);
        const __m512 odd_low = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xDD);
        const __m512 even_high = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x88);
        const __m512 odd_high = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xDD);
        _mm512_store_ps(out + c * out_stride, _mm512_shuffle_f32x4(even_low, even_high, 0x88));
        _mm512_store_ps(out + (4 + c) * out_stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
        _mm512_store_ps(out + (8 + c) * out_stride,
                        _mm512_shuffle_f32x4(even_low, even_high, 0xDD));
        _mm512_store_ps(out + (12 + c) * out_stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0xDD));
      });
}

struct Avx512Lanes::Whole {
  __m512i v;

  static PB_INLINE Whole All(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
  static PB_INLINE Whole BitsOf(Avx512Lanes x) { return {_mm512_castps_si512(x.v)}; }
  static PB_INLINE Whole Nearest(Avx512Lanes x) { return {_mm512_cvtps_epi32(x.v)}; }
  PB_INLINE Avx512Lanes AsBits() const { return {_mm512_castsi512_ps(v)}; }
  PB_INLINE Avx512Lanes ToFloat() const { return {_mm512_cvtepi32_ps(v)}; }
  PB_INLINE Whole ShiftedRight(unsigned bits) const { return {_mm512_srai_epi32(v, bits)}; }
  PB_INLINE Whole ShiftedLeft(unsigned bits) const { return {_mm512_slli_epi32(v, bits)}; }
  PB_INLINE void Store(std::uint32_t* at) const { _mm512_storeu_si512(at, v); }
  PB_INLINE void StoreShort(std::uint16_t* at) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), _mm512_cvtepi32_epi16(v));
  }
  PB_INLINE void AddTo(std::uint32_t* at) const {
    _mm512_storeu_si512(at, _mm512_add_epi32(_mm512_loadu_si512(at), v));
  }
  PB_INLINE void AddSquaresTo(std::uint64_t* at) const {
    const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(v));
    const __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(v, 1));
    _mm512_storeu_si512(at, _mm512_add_epi64(_mm512_loadu_si512(at), _mm512_mul_epu32(low, low)));
    _mm512_storeu_si512(at + 8,
                        _mm512_add_epi64(_mm512_loadu_si512(at + 8), _mm512_mul_epu32(high, high)));
  }
  PB_INLINE std::uint64_t Total() const {
    const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(v));
    const __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(v, 1));
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(_mm512_add_epi64(low, high)));
  }
};

PB_INLINE Avx512Lanes::Whole operator+(Avx512Lanes::Whole a, Avx512Lanes::Whole b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
PB_INLINE Avx512Lanes::Whole operator-(Avx512Lanes::Whole a, Avx512Lanes::Whole b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}

struct Avx512Lanes::Squares {
  __m512i even, odd;

  PB_INLINE Squares() : even(_mm512_setzero_si512()), odd(_mm512_setzero_si512()) {}

  PB_INLINE void Add(Whole q) {
    const __m512i high = _mm512_srli_epi64(q.v, 32);
    even = _mm512_add_epi64(even, _mm512_mul_epu32(q.v, q.v));
    odd = _mm512_add_epi64(odd, _mm512_mul_epu32(high, high));
  }
  PB_INLINE std::uint64_t Total() const {
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(_mm512_add_epi64(even, odd)));
  }
};

}  // namespace

bool HaveAvx512ForSpectral() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

SpectralKernel Avx512SpectralKernel(int frame, bool hann) {
  return KernelOf<Avx512Lanes>(frame, hann);
}

}  // namespace patchbay::ops

#ifdef __clang__
#pragma clang attribute pop
#endif

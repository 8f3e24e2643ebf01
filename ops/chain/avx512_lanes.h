// Sixteen floats as a lane type. Included by the one file of a variant, after its target pragma;
// used where the machine has AVX-512.
#pragma once

#include <immintrin.h>

#include "ops/chain/scalar_lanes.h"

namespace patchbay::ops {
namespace {

struct Avx512Lanes {
  static constexpr int kLanes = 16;
  struct Whole;
  __m512 v;

  static PB_LANE_CODE Avx512Lanes All(float x) { return {_mm512_set1_ps(x)}; }
  static PB_LANE_CODE Avx512Lanes Load(const float* at) { return {_mm512_loadu_ps(at)}; }
  static PB_LANE_CODE Avx512Lanes LoadBytes(const std::uint8_t* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
  }
  PB_LANE_CODE void Store(float* at) const { _mm512_storeu_ps(at, v); }
  static PB_LANE_CODE void CopyPast(std::byte* to, const std::byte* from, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; i += 64) {
      const __m512i part = _mm512_load_si512(from + i);
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), part);
    }
  }
  PB_LANE_CODE void StoreUint8(std::uint8_t* at) const {
    const __m512 within = _mm512_min_ps(_mm512_max_ps(v, _mm512_setzero_ps()), _mm512_set1_ps(255));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                     _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(within)));
  }
  PB_LANE_CODE void StoreHalf(std::uint16_t* at) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at),
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  PB_LANE_CODE void StoreBfloat(std::uint16_t* at) const {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __m512i chosen = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q),
                                                bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
  }
};

struct Avx512Lanes::Whole {
  __m512i v;

  static PB_LANE_CODE Whole All(std::uint32_t x) {
    return {_mm512_set1_epi32(static_cast<int>(x))};
  }
  static PB_LANE_CODE Whole Iota() {
    return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
  }
  static PB_LANE_CODE Whole BitsOf(Avx512Lanes x) { return {_mm512_castps_si512(x.v)}; }
  static PB_LANE_CODE Whole Nearest(Avx512Lanes x) { return {_mm512_cvtps_epi32(x.v)}; }
  PB_LANE_CODE Avx512Lanes AsBits() const { return {_mm512_castsi512_ps(v)}; }
  PB_LANE_CODE Avx512Lanes ToFloat() const { return {_mm512_cvtepi32_ps(v)}; }
  PB_LANE_CODE Whole Left(int bits) const {
    return {_mm512_slli_epi32(v, static_cast<unsigned>(bits))};
  }
  PB_LANE_CODE Whole Right(int bits) const {
    return {_mm512_srli_epi32(v, static_cast<unsigned>(bits))};
  }
  PB_LANE_CODE Whole RightSigned(int bits) const {
    return {_mm512_srai_epi32(v, static_cast<unsigned>(bits))};
  }
  PB_LANE_CODE void Product(std::uint32_t factor, Whole& high, Whole& low) const {
    const __m512i by = _mm512_set1_epi32(static_cast<int>(factor));
    const __m512i even = _mm512_mul_epu32(v, by);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(v, 32), by);
    high = {_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd)};
    low = {_mm512_mullo_epi32(v, by)};
  }
  PB_LANE_CODE std::uint64_t Total() const {
    return static_cast<std::uint64_t>(
               _mm512_reduce_add_epi64(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(v)))) +
           static_cast<std::uint64_t>(
               _mm512_reduce_add_epi64(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(v, 1))));
  }
};

PB_LANE_CODE Avx512Lanes operator+(Avx512Lanes a, Avx512Lanes b) {
  return {_mm512_add_ps(a.v, b.v)};
}
PB_LANE_CODE Avx512Lanes operator-(Avx512Lanes a, Avx512Lanes b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
PB_LANE_CODE Avx512Lanes operator*(Avx512Lanes a, Avx512Lanes b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
PB_LANE_CODE Avx512Lanes operator/(Avx512Lanes a, Avx512Lanes b) {
  return {_mm512_div_ps(a.v, b.v)};
}
PB_LANE_CODE Avx512Lanes FusedAdd(Avx512Lanes a, Avx512Lanes b, Avx512Lanes c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
PB_LANE_CODE Avx512Lanes Min(Avx512Lanes a, Avx512Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
PB_LANE_CODE Avx512Lanes Max(Avx512Lanes a, Avx512Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
PB_LANE_CODE Avx512Lanes Floor(Avx512Lanes a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}
PB_LANE_CODE Avx512Lanes Root(Avx512Lanes a) { return {_mm512_sqrt_ps(a.v)}; }
PB_LANE_CODE Avx512Lanes WhereEqual(Avx512Lanes a, Avx512Lanes b, Avx512Lanes then,
                                    Avx512Lanes otherwise) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ), otherwise.v, then.v)};
}
PB_LANE_CODE Avx512Lanes::Whole operator+(Avx512Lanes::Whole a, Avx512Lanes::Whole b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
PB_LANE_CODE Avx512Lanes::Whole operator-(Avx512Lanes::Whole a, Avx512Lanes::Whole b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
PB_LANE_CODE Avx512Lanes::Whole operator&(Avx512Lanes::Whole a, Avx512Lanes::Whole b) {
  return {_mm512_and_si512(a.v, b.v)};
}
PB_LANE_CODE Avx512Lanes::Whole operator^(Avx512Lanes::Whole a, Avx512Lanes::Whole b) {
  return {_mm512_xor_si512(a.v, b.v)};
}

/// Eight bytes of each lane, of which six are its two pixels.
PB_LANE_CODE void LoadPairs(const std::uint8_t* base, Avx512Lanes::Whole offset,
                            std::uint32_t last_load, Avx512Lanes (&a)[3], Avx512Lanes (&b)[3]) {
  const __m512i at = _mm512_min_epu32(offset.v, _mm512_set1_epi32(static_cast<int>(last_load)));
  __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), base, 1);
  __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), base, 1);
  if (_mm512_cmpneq_epu32_mask(offset.v, at) != 0) {
    const __m512i shift = _mm512_slli_epi32(_mm512_sub_epi32(offset.v, at), 3);
    low = _mm512_srlv_epi64(low, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(shift)));
    high = _mm512_srlv_epi64(high, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(shift, 1)));
  }
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i first = _mm512_permutex2var_epi32(low, even, high);
  const __m512i second =
      _mm512_permutex2var_epi32(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
  const __m512i byte = _mm512_set1_epi32(255);
  const auto part = [&](__m512i from, unsigned bits) __attribute__((always_inline)) {
    return Avx512Lanes{_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(from, bits), byte))};
  };
  a[0] = part(first, 0);
  a[1] = part(first, 8);
  a[2] = part(first, 16);
  b[0] = part(first, 24);
  b[1] = part(second, 0);
  b[2] = part(second, 8);
}

}  // namespace
}  // namespace patchbay::ops

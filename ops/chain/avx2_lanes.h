// Eight floats as a lane type. Included by the one file of a variant.
#pragma once

#include <type_traits>

#include <immintrin.h>

#include "ops/chain/scalar_lanes.h"

namespace patchbay::ops {
namespace {

struct Avx2Lanes {
  static constexpr int kLanes = 8;
  struct Whole;
  __m256 v;

  static PB_LANE_CODE Avx2Lanes All(float x) { return {_mm256_set1_ps(x)}; }
  static PB_LANE_CODE Avx2Lanes Load(const float* at) { return {_mm256_loadu_ps(at)}; }
  static PB_LANE_CODE Avx2Lanes LoadBytes(const std::uint8_t* at) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))};
  }
  PB_LANE_CODE void Store(float* at) const { _mm256_storeu_ps(at, v); }
  static PB_LANE_CODE void CopyPast(std::byte* to, const std::byte* from, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; i += 32) {
      const __m256i part = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), part);
    }
  }
  PB_LANE_CODE void StoreUint8(std::uint8_t* at) const {
    const __m256 within = _mm256_min_ps(_mm256_max_ps(v, _mm256_setzero_ps()), _mm256_set1_ps(255));
    const __m256i whole = _mm256_cvtps_epi32(within);
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(at), _mm_packus_epi16(words, words));
  }
  PB_LANE_CODE void StoreHalf(std::uint16_t* at) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  PB_LANE_CODE void StoreBfloat(std::uint16_t* at) const {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    const __m256i chosen = _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), is_nan));
    const __m256i high = _mm256_srli_epi32(chosen, 16);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(at),
        _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
  }
};

struct Avx2Lanes::Whole {
  __m256i v;

  static PB_LANE_CODE Whole All(std::uint32_t x) {
    return {_mm256_set1_epi32(static_cast<int>(x))};
  }
  static PB_LANE_CODE Whole Iota() { return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)}; }
  static PB_LANE_CODE Whole BitsOf(Avx2Lanes x) { return {_mm256_castps_si256(x.v)}; }
  static PB_LANE_CODE Whole Nearest(Avx2Lanes x) { return {_mm256_cvtps_epi32(x.v)}; }
  PB_LANE_CODE Avx2Lanes AsBits() const { return {_mm256_castsi256_ps(v)}; }
  PB_LANE_CODE Avx2Lanes ToFloat() const { return {_mm256_cvtepi32_ps(v)}; }
  PB_LANE_CODE Whole Left(int bits) const { return {_mm256_slli_epi32(v, bits)}; }
  PB_LANE_CODE Whole Right(int bits) const { return {_mm256_srli_epi32(v, bits)}; }
  PB_LANE_CODE Whole RightSigned(int bits) const { return {_mm256_srai_epi32(v, bits)}; }
  PB_LANE_CODE void Product(std::uint32_t factor, Whole& high, Whole& low) const {
    const __m256i by = _mm256_set1_epi32(static_cast<int>(factor));
    const __m256i even = _mm256_mul_epu32(v, by);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(v, 32), by);
    high = {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA)};
    low = {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA)};
  }
  PB_LANE_CODE std::uint64_t Total() const {
    alignas(32) std::uint32_t lane[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lane), v);
    std::uint64_t sum = 0;
    for (const std::uint32_t x : lane) sum += x;
    return sum;
  }
};

PB_LANE_CODE Avx2Lanes operator+(Avx2Lanes a, Avx2Lanes b) { return {_mm256_add_ps(a.v, b.v)}; }
PB_LANE_CODE Avx2Lanes operator-(Avx2Lanes a, Avx2Lanes b) { return {_mm256_sub_ps(a.v, b.v)}; }
PB_LANE_CODE Avx2Lanes operator*(Avx2Lanes a, Avx2Lanes b) { return {_mm256_mul_ps(a.v, b.v)}; }
PB_LANE_CODE Avx2Lanes operator/(Avx2Lanes a, Avx2Lanes b) { return {_mm256_div_ps(a.v, b.v)}; }
PB_LANE_CODE Avx2Lanes FusedAdd(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
PB_LANE_CODE Avx2Lanes Min(Avx2Lanes a, Avx2Lanes b) { return {_mm256_min_ps(a.v, b.v)}; }
PB_LANE_CODE Avx2Lanes Max(Avx2Lanes a, Avx2Lanes b) { return {_mm256_max_ps(a.v, b.v)}; }
PB_LANE_CODE Avx2Lanes Floor(Avx2Lanes a) { return {_mm256_floor_ps(a.v)}; }
PB_LANE_CODE Avx2Lanes Root(Avx2Lanes a) { return {_mm256_sqrt_ps(a.v)}; }
PB_LANE_CODE Avx2Lanes WhereEqual(Avx2Lanes a, Avx2Lanes b, Avx2Lanes then, Avx2Lanes otherwise) {
  return {_mm256_blendv_ps(otherwise.v, then.v, _mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ))};
}
PB_LANE_CODE Avx2Lanes::Whole operator+(Avx2Lanes::Whole a, Avx2Lanes::Whole b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
PB_LANE_CODE Avx2Lanes::Whole operator-(Avx2Lanes::Whole a, Avx2Lanes::Whole b) {
  return {_mm256_sub_epi32(a.v, b.v)};
}
PB_LANE_CODE Avx2Lanes::Whole operator&(Avx2Lanes::Whole a, Avx2Lanes::Whole b) {
  return {_mm256_and_si256(a.v, b.v)};
}
PB_LANE_CODE Avx2Lanes::Whole operator^(Avx2Lanes::Whole a, Avx2Lanes::Whole b) {
  return {_mm256_xor_si256(a.v, b.v)};
}

/// Eight bytes of each lane, of which six are its two pixels.
PB_LANE_CODE void LoadPairs(const std::uint8_t* base, Avx2Lanes::Whole offset,
                            std::uint32_t last_load, Avx2Lanes (&a)[3], Avx2Lanes (&b)[3]) {
  const __m256i at = _mm256_min_epu32(offset.v, _mm256_set1_epi32(static_cast<int>(last_load)));
  const __m256i shift = _mm256_slli_epi32(_mm256_sub_epi32(offset.v, at), 3);
  const auto* from = reinterpret_cast<const long long*>(base);  // NOLINT: what the gather takes
  __m256i low = _mm256_i32gather_epi64(from, _mm256_castsi256_si128(at), 1);
  __m256i high = _mm256_i32gather_epi64(from, _mm256_extracti128_si256(at, 1), 1);
  low = _mm256_srlv_epi64(low, _mm256_cvtepu32_epi64(_mm256_castsi256_si128(shift)));
  high = _mm256_srlv_epi64(high, _mm256_cvtepu32_epi64(_mm256_extracti128_si256(shift, 1)));
  const auto halves = [&](auto select) __attribute__((always_inline)) {
    const __m256 mixed = _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high),
                                           decltype(select)::value);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xD8);
  };
  const __m256i first = halves(std::integral_constant<int, 0x88>{});
  const __m256i second = halves(std::integral_constant<int, 0xDD>{});
  const __m256i byte = _mm256_set1_epi32(255);
  const auto part = [&](__m256i from_where, int bits) __attribute__((always_inline)) {
    return Avx2Lanes{
        _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(from_where, bits), byte))};
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

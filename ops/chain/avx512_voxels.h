// Two neighbouring voxels of a block, sixteen lanes at once. Included by the one file of a variant,
// after its target pragma.
#pragma once

#include "ops/chain/avx512_lanes.h"

namespace patchbay::ops {
namespace {

/// Voxels `index` and `index` + 1 of each lane. No voxel from `count` on is read.
PB_LANE_CODE void LoadVoxelPair(const std::int16_t* voxels, Avx512Lanes::Whole index,
                                std::uint32_t /*count*/, Avx512Lanes& a, Avx512Lanes& b) {
  const __m512i pair = _mm512_i32gather_epi32(index.v, voxels, 2);
  a = {_mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 16))};
  b = {_mm512_cvtepi32_ps(_mm512_srai_epi32(pair, 16))};
}
PB_LANE_CODE void LoadVoxelPair(const std::uint16_t* voxels, Avx512Lanes::Whole index,
                                std::uint32_t /*count*/, Avx512Lanes& a, Avx512Lanes& b) {
  const __m512i pair = _mm512_i32gather_epi32(index.v, voxels, 2);
  a = {_mm512_cvtepi32_ps(_mm512_and_si512(pair, _mm512_set1_epi32(0xFFFF)))};
  b = {_mm512_cvtepi32_ps(_mm512_srli_epi32(pair, 16))};
}
/// Loads four bytes; at the end of the block those before it. Needs four voxels.
PB_LANE_CODE void LoadVoxelPair(const std::uint8_t* voxels, Avx512Lanes::Whole index,
                                std::uint32_t count, Avx512Lanes& a, Avx512Lanes& b) {
  const __m512i at = _mm512_min_epu32(index.v, _mm512_set1_epi32(static_cast<int>(count - 4)));
  const __m512i shift = _mm512_slli_epi32(_mm512_sub_epi32(index.v, at), 3);
  const __m512i four = _mm512_srlv_epi32(_mm512_i32gather_epi32(at, voxels, 1), shift);
  const __m512i byte = _mm512_set1_epi32(255);
  a = {_mm512_cvtepi32_ps(_mm512_and_si512(four, byte))};
  b = {_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(four, 8), byte))};
}
PB_LANE_CODE void LoadVoxelPair(const float* voxels, Avx512Lanes::Whole index,
                                std::uint32_t /*count*/, Avx512Lanes& a, Avx512Lanes& b) {
  a = {_mm512_i32gather_ps(index.v, voxels, 4)};
  b = {_mm512_i32gather_ps(index.v, voxels + 1, 4)};
}

}  // namespace
}  // namespace patchbay::ops

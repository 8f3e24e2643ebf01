// Two neighbouring voxels of a block, eight lanes at once. Included by the one file of a variant.
#pragma once

#include "ops/chain/avx2_lanes.h"

namespace patchbay::ops {
namespace {

/// Voxels `index` and `index` + 1 of each lane. No voxel from `count` on is read.
PB_LANE_CODE void LoadVoxelPair(const std::int16_t* voxels, Avx2Lanes::Whole index,
                                std::uint32_t /*count*/, Avx2Lanes& a, Avx2Lanes& b) {
  const __m256i pair = _mm256_i32gather_epi32(reinterpret_cast<const int*>(voxels), index.v, 2);
  a = {_mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(pair, 16), 16))};
  b = {_mm256_cvtepi32_ps(_mm256_srai_epi32(pair, 16))};
}
PB_LANE_CODE void LoadVoxelPair(const std::uint16_t* voxels, Avx2Lanes::Whole index,
                                std::uint32_t /*count*/, Avx2Lanes& a, Avx2Lanes& b) {
  const __m256i pair = _mm256_i32gather_epi32(reinterpret_cast<const int*>(voxels), index.v, 2);
  a = {_mm256_cvtepi32_ps(_mm256_and_si256(pair, _mm256_set1_epi32(0xFFFF)))};
  b = {_mm256_cvtepi32_ps(_mm256_srli_epi32(pair, 16))};
}
/// Loads four bytes; at the end of the block those before it. Needs four voxels.
PB_LANE_CODE void LoadVoxelPair(const std::uint8_t* voxels, Avx2Lanes::Whole index,
                                std::uint32_t count, Avx2Lanes& a, Avx2Lanes& b) {
  const __m256i at = _mm256_min_epu32(index.v, _mm256_set1_epi32(static_cast<int>(count - 4)));
  const __m256i shift = _mm256_slli_epi32(_mm256_sub_epi32(index.v, at), 3);
  const __m256i four =
      _mm256_srlv_epi32(_mm256_i32gather_epi32(reinterpret_cast<const int*>(voxels), at, 1), shift);
  const __m256i byte = _mm256_set1_epi32(255);
  a = {_mm256_cvtepi32_ps(_mm256_and_si256(four, byte))};
  b = {_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(four, 8), byte))};
}
PB_LANE_CODE void LoadVoxelPair(const float* voxels, Avx2Lanes::Whole index,
                                std::uint32_t /*count*/, Avx2Lanes& a, Avx2Lanes& b) {
  a = {_mm256_i32gather_ps(voxels, index.v, 4)};
  b = {_mm256_i32gather_ps(voxels + 1, index.v, 4)};
}

}  // namespace
}  // namespace patchbay::ops

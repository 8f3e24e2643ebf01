// The AVX2 path: widen eight bytes, one fused multiply-add, round to the output type.
#include <immintrin.h>

#include "ops/chain_rows.h"

namespace patchbay::ops {
namespace {

bool Aligned(const std::byte* at, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
}

struct HalfStore {
  static constexpr std::int64_t kBytes = 2;
  template <bool kStream>
  static void Put(__m256 value, std::byte* out) {
    const __m128i bits = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if constexpr (kStream) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(out), bits);
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bits);
    }
  }
};

/// No NaN comes here: the inputs are 0..255 and the line is finite.
struct Bfloat16Store {
  static constexpr std::int64_t kBytes = 2;
  template <bool kStream>
  static void Put(__m256 value, std::byte* out) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    const __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    if constexpr (kStream) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(out), packed);
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), packed);
    }
  }
};

struct FloatStore {
  static constexpr std::int64_t kBytes = 4;
  template <bool kStream>
  static void Put(__m256 value, std::byte* out) {
    if constexpr (kStream) {
      _mm256_stream_ps(reinterpret_cast<float*>(out), value);
    } else {
      _mm256_storeu_ps(reinterpret_cast<float*>(out), value);
    }
  }
};

/// Picks byte `channel` of pixels 0..3 (low half, loaded from byte 0) and 4..7 (high half, loaded
/// from byte 8, so that nothing past 24 bytes is read) into 32-bit lanes.
__m256i ChannelMask(int channel) {
  alignas(32) std::int8_t mask[32];
  for (int i = 0; i < 32; ++i) mask[i] = -1;
  for (int pixel = 0; pixel < 4; ++pixel) {
    mask[4 * pixel] = static_cast<std::int8_t>(3 * pixel + channel);
    mask[16 + 4 * pixel] = static_cast<std::int8_t>(4 + 3 * pixel + channel);
  }
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(mask));
}

template <typename Store, bool kStream>
std::int64_t PlanarRow(const RowJob& job, const std::array<AffineChannel, 3>& affine) {
  const __m256i mask[3] = {ChannelMask(0), ChannelMask(1), ChannelMask(2)};
  __m256 slope[3], offset[3];
  for (std::size_t c = 0; c < 3; ++c) {
    slope[c] = _mm256_set1_ps(affine[c].slope);
    offset[c] = _mm256_set1_ps(affine[c].offset);
  }
  std::int64_t x = 0;
  for (; x + 8 <= job.width; x += 8) {
    const auto* at = reinterpret_cast<const __m128i*>(job.row + 3 * x);
    const auto* high = reinterpret_cast<const __m128i*>(job.row + 3 * x + 8);
    const __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at)),
                                                   _mm_loadu_si128(high), 1);
    for (int c = 0; c < 3; ++c) {
      const __m256 value = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, mask[c]));
      Store::template Put<kStream>(_mm256_fmadd_ps(value, slope[c], offset[c]),
                                   job.out + c * job.plane_bytes + x * Store::kBytes);
    }
  }
  return x;
}

template <typename Store, bool kStream>
std::int64_t InterleavedRow(const RowJob& job, const std::array<AffineChannel, 3>& affine) {
  __m256 slope[3], offset[3];
  for (std::size_t phase = 0; phase < 3; ++phase) {
    alignas(32) float slopes[8], offsets[8];
    for (std::size_t i = 0; i < 8; ++i) {
      slopes[i] = affine[(8 * phase + i) % 3].slope;
      offsets[i] = affine[(8 * phase + i) % 3].offset;
    }
    slope[phase] = _mm256_load_ps(slopes);
    offset[phase] = _mm256_load_ps(offsets);
  }
  std::int64_t x = 0;
  for (; x + 8 <= job.width; x += 8) {
    for (std::int64_t phase = 0; phase < 3; ++phase) {
      const std::int64_t element = 3 * x + 8 * phase;
      const auto* at = reinterpret_cast<const __m128i*>(job.row + element);
      const __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at)));
      Store::template Put<kStream>(_mm256_fmadd_ps(value, slope[phase], offset[phase]),
                                   job.out + element * Store::kBytes);
    }
  }
  return x;
}

template <typename Store>
std::int64_t Row(const RowJob& job, const std::array<AffineChannel, 3>& affine, bool planar) {
  constexpr std::size_t kStoreBytes = static_cast<std::size_t>(8 * Store::kBytes);
  const bool aligned = Aligned(job.out, kStoreBytes) &&
                       (!planar || static_cast<std::size_t>(job.plane_bytes) % kStoreBytes == 0);
  if (job.stream && aligned) {
    return planar ? PlanarRow<Store, true>(job, affine) : InterleavedRow<Store, true>(job, affine);
  }
  return planar ? PlanarRow<Store, false>(job, affine) : InterleavedRow<Store, false>(job, affine);
}

}  // namespace

std::int64_t MakeRowAvx2(const RowJob& job, const std::array<AffineChannel, 3>& affine, CastTo to,
                         bool planar) {
  switch (to) {
    case CastTo::kFloat16:
      return Row<HalfStore>(job, affine, planar);
    case CastTo::kBfloat16:
      return Row<Bfloat16Store>(job, affine, planar);
    case CastTo::kFloat32:
      return Row<FloatStore>(job, affine, planar);
    default:
      return 0;
  }
}

}  // namespace patchbay::ops

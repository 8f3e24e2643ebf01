// The AVX2 path: widen eight bytes, one fused multiply-add, round to the output type.
#include <immintrin.h>

#include "ops/chain/chain_rows.h"

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

/// Eight values by a line in float.
struct FloatLine {
  __m256 slope, offset;

  /// Lane i takes the line of channel (first + i * step) % 3.
  FloatLine(const AffineRow& affine, std::size_t first, std::size_t step) {
    alignas(32) float slopes[8], offsets[8];
    for (std::size_t i = 0; i < 8; ++i) {
      slopes[i] = affine.in_float[(first + i * step) % 3].slope;
      offsets[i] = affine.in_float[(first + i * step) % 3].offset;
    }
    slope = _mm256_load_ps(slopes);
    offset = _mm256_load_ps(offsets);
  }
  __m256 At(__m256i x) const { return _mm256_fmadd_ps(_mm256_cvtepi32_ps(x), slope, offset); }
};

/// Eight values by a line in double, rounded to float.
struct DoubleLine {
  __m256d slope[2], offset[2];

  DoubleLine(const AffineRow& affine, std::size_t first, std::size_t step) {
    alignas(32) double slopes[8], offsets[8];
    for (std::size_t i = 0; i < 8; ++i) {
      slopes[i] = affine.in_double[(first + i * step) % 3].slope;
      offsets[i] = affine.in_double[(first + i * step) % 3].offset;
    }
    for (std::size_t half = 0; half < 2; ++half) {
      slope[half] = _mm256_load_pd(slopes + 4 * half);
      offset[half] = _mm256_load_pd(offsets + 4 * half);
    }
  }
  __m256 At(__m256i x) const {
    const __m256d low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(x));
    const __m256d high = _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1));
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_fmadd_pd(high, slope[1], offset[1])),
                           _mm256_cvtpd_ps(_mm256_fmadd_pd(low, slope[0], offset[0])));
  }
};

/// Eight pixels are loaded as two halves of 16 bytes, from byte 0 and from byte 8, so that nothing
/// past their 24 bytes is read. The mask picks one channel of each into 32-bit lanes; mirrored, the
/// halves are swapped and each is read backwards.
__m256i ChannelMask(int channel, bool mirrored) {
  alignas(32) std::int8_t mask[32];
  for (int i = 0; i < 32; ++i) mask[i] = -1;
  for (int pixel = 0; pixel < 4; ++pixel) {
    const int from = mirrored ? 3 - pixel : pixel;
    mask[4 * pixel] = static_cast<std::int8_t>((mirrored ? 4 : 0) + 3 * from + channel);
    mask[16 + 4 * pixel] = static_cast<std::int8_t>((mirrored ? 0 : 4) + 3 * from + channel);
  }
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(mask));
}

template <typename Store, typename Line, bool kStream>
std::int64_t PlanarRow(const ByteRow& pixels, const AffineRow& affine) {
  const __m256i mask[3] = {ChannelMask(0, pixels.mirrored), ChannelMask(1, pixels.mirrored),
                           ChannelMask(2, pixels.mirrored)};
  const Line line[3] = {Line(affine, 0, 0), Line(affine, 1, 0), Line(affine, 2, 0)};
  const std::int64_t low = pixels.mirrored ? 8 : 0, high = pixels.mirrored ? 0 : 8;
  std::int64_t x = 0;
  for (; x + kAvx2Pixels <= pixels.width; x += kAvx2Pixels) {
    const std::uint8_t* at =
        pixels.row + 3 * (pixels.mirrored ? pixels.width - kAvx2Pixels - x : x);
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + low));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + high));
    const __m256i eight = _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
    for (int c = 0; c < 3; ++c) {
      Store::template Put<kStream>(line[c].At(_mm256_shuffle_epi8(eight, mask[c])),
                                   pixels.out + c * pixels.plane_bytes + x * Store::kBytes);
    }
  }
  return x;
}

template <typename Store, typename Line, bool kStream>
std::int64_t InterleavedRow(const ByteRow& pixels, const AffineRow& affine) {
  const Line line[3] = {Line(affine, 0, 1), Line(affine, 8, 1), Line(affine, 16, 1)};
  std::int64_t x = 0;
  for (; x + kAvx2Pixels <= pixels.width; x += kAvx2Pixels) {
    for (std::int64_t phase = 0; phase < 3; ++phase) {
      const std::int64_t element = 3 * x + 8 * phase;
      const auto* at = reinterpret_cast<const __m128i*>(pixels.row + element);
      Store::template Put<kStream>(line[phase].At(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at))),
                                   pixels.out + element * Store::kBytes);
    }
  }
  return x;
}

template <typename Store, typename Line>
std::int64_t Row(const ByteRow& pixels, const AffineRow& affine, bool planar) {
  constexpr std::size_t kStoreBytes = static_cast<std::size_t>(8 * Store::kBytes);
  const bool aligned = Aligned(pixels.out, kStoreBytes) &&
                       (!planar || static_cast<std::size_t>(pixels.plane_bytes) % kStoreBytes == 0);
  if (pixels.stream && aligned) {
    return planar ? PlanarRow<Store, Line, true>(pixels, affine)
                  : InterleavedRow<Store, Line, true>(pixels, affine);
  }
  return planar ? PlanarRow<Store, Line, false>(pixels, affine)
                : InterleavedRow<Store, Line, false>(pixels, affine);
}

template <typename Line>
std::int64_t RowOf(const ByteRow& pixels, const AffineRow& affine, CastTo to, bool planar) {
  switch (to) {
    case CastTo::kFloat16:
      return Row<HalfStore, Line>(pixels, affine, planar);
    case CastTo::kBfloat16:
      return Row<Bfloat16Store, Line>(pixels, affine, planar);
    case CastTo::kFloat32:
      return Row<FloatStore, Line>(pixels, affine, planar);
    default:
      return 0;
  }
}

}  // namespace

std::int64_t MakeRowAvx2(const ByteRow& pixels, const AffineRow& affine, CastTo to, bool planar) {
  return affine.wide ? RowOf<DoubleLine>(pixels, affine, to, planar)
                     : RowOf<FloatLine>(pixels, affine, to, planar);
}

std::int64_t SplitRowAvx2(const ByteRow& pixels) {
  constexpr std::int64_t kPixels = 16;
  // mask[c][k] moves channel c's bytes of the k-th 16 of 48 bytes to their places.
  alignas(16) std::int8_t bytes[3][3][16];
  for (int c = 0; c < 3; ++c) {
    for (int pixel = 0; pixel < 16; ++pixel) {
      const int place = 3 * pixel + c;
      for (int k = 0; k < 3; ++k) {
        bytes[c][k][pixel] = static_cast<std::int8_t>(place / 16 == k ? place % 16 : -1);
      }
    }
  }
  std::int64_t x = 0;
  for (; x + kPixels <= pixels.width; x += kPixels) {
    const auto* at = reinterpret_cast<const __m128i*>(pixels.row + 3 * x);
    const __m128i part[3] = {_mm_loadu_si128(at), _mm_loadu_si128(at + 1), _mm_loadu_si128(at + 2)};
    for (int c = 0; c < 3; ++c) {
      __m128i plane = _mm_setzero_si128();
      for (int k = 0; k < 3; ++k) {
        const __m128i mask = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes[c][k]));
        plane = _mm_or_si128(plane, _mm_shuffle_epi8(part[k], mask));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(pixels.out + c * pixels.plane_bytes + x), plane);
    }
  }
  return x;
}

}  // namespace patchbay::ops

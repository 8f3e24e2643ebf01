// The AVX-512 VBMI path: a 256-entry byte table fits in four registers, so 64 pixels are looked up
// by two shuffles for each byte of the result: no arithmetic, hence no rounding to worry about.
//
// Only these functions may use AVX-512: the file is compiled for every machine, and they are called
// only if HasAvx512Shuffle().
#include <immintrin.h>

#include "ops/chain/chain_rows.h"

#define PB_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))

// GCC 12 takes _mm512_undefined_epi32 inside its own intrinsics for a use of an uninitialised
// value.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace patchbay::ops {
namespace {

/// Byte numbers and masks. Every table that is loaded whole is aligned to a vector.
struct Shuffles {
  /// Byte numbers for 64 pixels, mirrored or not: channel c from bytes 0..127, from bytes 128..191,
  /// and the mask of those from the latter.
  alignas(64) std::uint8_t pick_low[2][3][64];
  alignas(64) std::uint8_t pick_high[2][3][64];
  std::uint64_t in_high[2][3];
  alignas(64) std::uint8_t zip_bytes[2][64];  ///< a0 b0 a1 b1 ... : first and second half
  alignas(64) std::uint16_t zip_words[2][32];
  std::uint64_t of_channel[3][3];  ///< interleaved: [phase][channel] bytes of that channel
};

constexpr Shuffles MakeShuffles() {
  Shuffles s{};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t x = 0; x < 64; ++x) {
      for (std::size_t mirrored = 0; mirrored < 2; ++mirrored) {
        const std::size_t place = 3 * (mirrored != 0 ? 63 - x : x) + c;
        s.pick_low[mirrored][c][x] = static_cast<std::uint8_t>(place & 127);
        s.pick_high[mirrored][c][x] = static_cast<std::uint8_t>(place & 63);
        if (place >= 128) s.in_high[mirrored][c] |= std::uint64_t{1} << x;
      }
    }
    for (std::size_t x = 0; x < 64; ++x) {
      s.of_channel[c][(c * 64 + x) % 3] |= std::uint64_t{1} << x;
    }
  }
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = 0; i < 64; ++i) {
      s.zip_bytes[half][i] = static_cast<std::uint8_t>((i % 2) * 64 + half * 32 + i / 2);
    }
    for (std::size_t i = 0; i < 32; ++i) {
      s.zip_words[half][i] = static_cast<std::uint16_t>((i % 2) * 32 + half * 16 + i / 2);
    }
  }
  return s;
}

constexpr Shuffles kShuffles = MakeShuffles();

PB_AVX512 inline __m512i Load(const void* at) { return _mm512_load_si512(at); }

PB_AVX512 inline __m512i LookUp(const std::uint8_t* table, __m512i index) {
  const __m512i low = _mm512_permutex2var_epi8(Load(table), index, Load(table + 64));
  const __m512i high = _mm512_permutex2var_epi8(Load(table + 128), index, Load(table + 192));
  return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high);
}

PB_AVX512 inline __mmask64 FirstBytes(std::int64_t n) {
  return n >= 64 ? ~std::uint64_t{0} : n <= 0 ? 0 : (std::uint64_t{1} << n) - 1;
}

/// `bytes` of the vector; streams whole, aligned vectors when asked.
PB_AVX512 inline void Store(std::byte* out, __m512i value, std::int64_t bytes, bool stream) {
  if (stream && bytes >= 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out), value);
  } else if (bytes > 0) {
    _mm512_mask_storeu_epi8(out, FirstBytes(bytes), value);
  }
}

/// Looks 64 values up by `index` and stores the first n elements of kBytes each. `byte` has byte b
/// of each result, merged by the caller.
template <int kBytes>
PB_AVX512 inline void StoreElements(const __m512i (&byte)[kBytes], std::byte* out, std::int64_t n,
                                    bool stream) {
  if constexpr (kBytes == 1) {
    Store(out, byte[0], n, stream);
  } else if constexpr (kBytes == 2) {
    for (int half = 0; half < 2; ++half) {
      const __m512i zip = Load(kShuffles.zip_bytes[half]);
      Store(out + 64 * half, _mm512_permutex2var_epi8(byte[0], zip, byte[1]), 2 * n - 64 * half,
            stream);
    }
  } else {
    for (int half = 0; half < 2; ++half) {
      const __m512i zip = Load(kShuffles.zip_bytes[half]);
      const __m512i low = _mm512_permutex2var_epi8(byte[0], zip, byte[1]);
      const __m512i high = _mm512_permutex2var_epi8(byte[2], zip, byte[3]);
      for (int quarter = 0; quarter < 2; ++quarter) {
        const __m512i words = Load(kShuffles.zip_words[quarter]);
        const std::int64_t at = 128 * half + 64 * quarter;
        Store(out + at, _mm512_permutex2var_epi16(low, words, high), 4 * n - at, stream);
      }
    }
  }
}

template <int kBytes>
PB_AVX512 void PlanarRow(const ByteRow& pixels, const ByteTables& tables, bool stream) {
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t way = pixels.mirrored ? 1 : 0;
    const __m512i pick_low = Load(kShuffles.pick_low[way][c]);
    const __m512i pick_high = Load(kShuffles.pick_high[way][c]);
    const __mmask64 in_high = kShuffles.in_high[way][c];
    std::byte* plane = pixels.out + static_cast<std::int64_t>(c) * pixels.plane_bytes;
    for (std::int64_t x = 0; x < pixels.width; x += kAvx512Pixels) {
      const std::int64_t n = pixels.width - x;
      const std::uint8_t* at = pixels.row + 3 * (pixels.mirrored ? n - kAvx512Pixels : x);
      const __m512i a = _mm512_maskz_loadu_epi8(FirstBytes(3 * n), at);
      const __m512i b = _mm512_maskz_loadu_epi8(FirstBytes(3 * n - 64), at + 64);
      const __m512i d = _mm512_maskz_loadu_epi8(FirstBytes(3 * n - 128), at + 128);
      const __m512i channel = _mm512_mask_permutexvar_epi8(_mm512_permutex2var_epi8(a, pick_low, b),
                                                           in_high, pick_high, d);
      __m512i byte[kBytes];
      for (int k = 0; k < kBytes; ++k) byte[k] = LookUp(tables.plane[k][c], channel);
      StoreElements<kBytes>(byte, plane + x * kBytes, n, stream);
    }
  }
}

template <int kBytes>
PB_AVX512 void InterleavedRow(const ByteRow& pixels, const ByteTables& tables, bool stream) {
  const std::int64_t elements = 3 * pixels.width;
  std::size_t phase = 0;
  for (std::int64_t i = 0; i < elements; i += kAvx512Pixels) {
    const __m512i values = _mm512_maskz_loadu_epi8(FirstBytes(elements - i), pixels.row + i);
    __m512i byte[kBytes];
    for (int k = 0; k < kBytes; ++k) {
      __m512i merged = LookUp(tables.plane[k][0], values);
      merged = _mm512_mask_mov_epi8(merged, kShuffles.of_channel[phase][1],
                                    LookUp(tables.plane[k][1], values));
      byte[k] = _mm512_mask_mov_epi8(merged, kShuffles.of_channel[phase][2],
                                     LookUp(tables.plane[k][2], values));
    }
    StoreElements<kBytes>(byte, pixels.out + i * kBytes, elements - i, stream);
    phase = phase == 2 ? 0 : phase + 1;
  }
}

template <int kBytes>
PB_AVX512 void Row(const ByteRow& pixels, const ByteTables& tables, bool planar) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(pixels.out) % 64 == 0 &&
                       (!planar || pixels.plane_bytes % 64 == 0);
  if (planar) return PlanarRow<kBytes>(pixels, tables, pixels.stream && aligned);
  return InterleavedRow<kBytes>(pixels, tables, pixels.stream && aligned);
}

}  // namespace

void MakeRowAvx512(const ByteRow& pixels, const ByteTables& tables, CastTo to, bool planar) {
  switch (to) {
    case CastTo::kUint8:
      return Row<1>(pixels, tables, planar);
    case CastTo::kFloat16:
    case CastTo::kBfloat16:
      return Row<2>(pixels, tables, planar);
    case CastTo::kFloat32:
      return Row<4>(pixels, tables, planar);
  }
}

}  // namespace patchbay::ops

// SHA-256 of sixteen streams, one in each 32-bit lane of AVX-512 registers.
// GCC 12 takes the undefined operand inside its own AVX-512 headers for a mistake of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "runtime/core/hash_blocks.h"

#define PATCHBAY_AVX512 __attribute__((target("avx512f,avx512bw"), always_inline)) inline

namespace patchbay {
namespace {

using Vector = __m512i;

/// Truth tables of vpternlog.
constexpr int kXor3 = 0x96, kChoose = 0xCA, kMajority = 0xE8;

template <int kA, int kB, int kC>
PATCHBAY_AVX512 Vector BigSigma(Vector x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, kA), _mm512_ror_epi32(x, kB),
                                   _mm512_ror_epi32(x, kC), kXor3);
}

template <int kA, int kB, int kShift>
PATCHBAY_AVX512 Vector SmallSigma(Vector x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, kA), _mm512_ror_epi32(x, kB),
                                   _mm512_srli_epi32(x, kShift), kXor3);
}

/// Round kRound of sixteen, and word kRound of the next sixteen where they are wanted. The roles of
/// the eight words move on by one each round, the words stay.
template <int kRound, bool kNext>
PATCHBAY_AVX512 void Rounds(Vector (&s)[8], Vector (&w)[16], const std::uint32_t* constants) {
  if constexpr (kRound < 16) {
    const Vector a = s[(8 - kRound) & 7], b = s[(9 - kRound) & 7], c = s[(10 - kRound) & 7];
    const Vector e = s[(12 - kRound) & 7], f = s[(13 - kRound) & 7], g = s[(14 - kRound) & 7];
    Vector& d = s[(11 - kRound) & 7];
    Vector& h = s[(15 - kRound) & 7];
    const Vector key = _mm512_set1_epi32(static_cast<int>(constants[kRound]));
    Vector sum = _mm512_add_epi32(h, _mm512_add_epi32(w[kRound], key));
    sum = _mm512_add_epi32(sum, _mm512_ternarylogic_epi32(e, f, g, kChoose));
    sum = _mm512_add_epi32(sum, BigSigma<6, 11, 25>(e));
    d = _mm512_add_epi32(d, sum);
    sum = _mm512_add_epi32(sum, _mm512_ternarylogic_epi32(a, b, c, kMajority));
    h = _mm512_add_epi32(sum, BigSigma<2, 13, 22>(a));
    if constexpr (kNext) {
      Vector word = _mm512_add_epi32(w[kRound], w[(kRound + 9) & 15]);
      word = _mm512_add_epi32(word, SmallSigma<7, 18, 3>(w[(kRound + 1) & 15]));
      w[kRound] = _mm512_add_epi32(word, SmallSigma<17, 19, 10>(w[(kRound + 14) & 15]));
    }
    Rounds<kRound + 1, kNext>(s, w, constants);
  }
}

/// w[i] holds sixteen words of stream i; afterwards word i of each stream.
PATCHBAY_AVX512 void Transpose(Vector (&w)[16]) {
  Vector t[16];
  for (int i = 0; i < 16; i += 4) {
    const Vector low_a = _mm512_unpacklo_epi32(w[i], w[i + 1]);
    const Vector high_a = _mm512_unpackhi_epi32(w[i], w[i + 1]);
    const Vector low_b = _mm512_unpacklo_epi32(w[i + 2], w[i + 3]);
    const Vector high_b = _mm512_unpackhi_epi32(w[i + 2], w[i + 3]);
    t[i] = _mm512_unpacklo_epi64(low_a, low_b);
    t[i + 1] = _mm512_unpackhi_epi64(low_a, low_b);
    t[i + 2] = _mm512_unpacklo_epi64(high_a, high_b);
    t[i + 3] = _mm512_unpackhi_epi64(high_a, high_b);
  }
  // t[4 * group + i]: word i, 4 + i, 8 + i, 12 + i of the group's four streams, 128 bits each.
  for (int i = 0; i < 4; ++i) {
    const Vector low_a = _mm512_shuffle_i32x4(t[i], t[4 + i], 0x88);
    const Vector high_a = _mm512_shuffle_i32x4(t[i], t[4 + i], 0xDD);
    const Vector low_b = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0x88);
    const Vector high_b = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0xDD);
    w[i] = _mm512_shuffle_i32x4(low_a, low_b, 0x88);
    w[4 + i] = _mm512_shuffle_i32x4(high_a, high_b, 0x88);
    w[8 + i] = _mm512_shuffle_i32x4(low_a, low_b, 0xDD);
    w[12 + i] = _mm512_shuffle_i32x4(high_a, high_b, 0xDD);
  }
}

}  // namespace

bool HasSixteenShaLanes() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}

__attribute__((target("avx512f,avx512bw"))) void Sha256BlocksOfSixteen(
    Sha256SixteenWords& words, const std::byte* const (&bytes)[16], std::size_t blocks) {
  Vector state[8];
  for (int i = 0; i < 8; ++i) state[i] = _mm512_load_si512(words.words[i]);
  const Vector big_endian =
      _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
  for (std::size_t block = 0; block < blocks; ++block) {
    Vector s[8], w[16];
    for (int i = 0; i < 16; ++i) {
      w[i] = _mm512_loadu_si512(bytes[i] + block * kSha256BlockBytes);
      w[i] = _mm512_shuffle_epi8(w[i], big_endian);
    }
    Transpose(w);
    for (int i = 0; i < 8; ++i) s[i] = state[i];
    for (int sixteen = 0; sixteen < 3; ++sixteen) {
      Rounds<0, true>(s, w, kSha256RoundConstants.data() + 16 * sixteen);
    }
    Rounds<0, false>(s, w, kSha256RoundConstants.data() + 48);
    for (int i = 0; i < 8; ++i) state[i] = _mm512_add_epi32(state[i], s[i]);
  }
  for (int i = 0; i < 8; ++i) _mm512_store_si512(words.words[i], state[i]);
}

}  // namespace patchbay

#include "runtime/core/hash_blocks.h"

#include <cpuid.h>
#include <immintrin.h>

namespace patchbay {
namespace {

/// One stream in registers: the instructions want the words as a, b, e, f and c, d, g, h.
struct Lane {
  __m128i abef, cdgh;
  __m128i message[4];
};

__attribute__((target("sha,sse4.1"), always_inline)) inline void Load(const Sha256Words& words,
                                                                      Lane& lane) {
  const auto* p = reinterpret_cast<const __m128i*>(words.data());
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(p), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(p + 1), 0x1B);
  lane.abef = _mm_alignr_epi8(cdab, efgh, 8);
  lane.cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
}

__attribute__((target("sha,sse4.1"), always_inline)) inline void Store(const Lane& lane,
                                                                       Sha256Words& words) {
  auto* p = reinterpret_cast<__m128i*>(words.data());
  const __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(lane.cdgh, 0xB1);
  _mm_storeu_si128(p, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(p + 1, _mm_alignr_epi8(dchg, feba, 8));
}

/// Rounds 4 * kGroup to 4 * kGroup + 3.
template <int kGroup>
__attribute__((target("sha,sse4.1"), always_inline)) inline void FourRounds(
    Lane& lane, const std::byte* block) {
  __m128i& now = lane.message[kGroup % 4];
  if constexpr (kGroup < 4) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    now = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + kGroup);
    now = _mm_shuffle_epi8(now, big_endian);
  } else {
    const __m128i& back_3 = lane.message[(kGroup + 1) % 4];
    const __m128i& back_2 = lane.message[(kGroup + 2) % 4];
    const __m128i& back_1 = lane.message[(kGroup + 3) % 4];
    now = _mm_add_epi32(_mm_sha256msg1_epu32(now, back_3), _mm_alignr_epi8(back_1, back_2, 4));
    now = _mm_sha256msg2_epu32(now, back_1);
  }
  const auto* constants = reinterpret_cast<const __m128i*>(kSha256RoundConstants.data());
  const __m128i sum = _mm_add_epi32(now, _mm_load_si128(constants + kGroup));
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, sum);
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, _mm_shuffle_epi32(sum, 0x0E));
}

/// One block of each lane, group by group in turns.
template <int kLanes, int kGroup = 0>
__attribute__((target("sha,sse4.1"), always_inline)) inline void Rounds(
    Lane (&lanes)[kLanes], const std::byte* const (&blocks)[kLanes]) {
  if constexpr (kGroup < 16) {
    FourRounds<kGroup>(lanes[0], blocks[0]);
    if constexpr (kLanes > 1) FourRounds<kGroup>(lanes[1], blocks[1]);
    Rounds<kLanes, kGroup + 1>(lanes, blocks);
  }
}

template <int kLanes>
__attribute__((target("sha,sse4.1"), always_inline)) inline void Blocks(
    Sha256Words* const (&words)[kLanes], const std::byte* (&&at)[kLanes], std::size_t blocks) {
  Lane lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) Load(*words[i], lanes[i]);
  for (; blocks > 0; --blocks) {
    __m128i abef[kLanes], cdgh[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      abef[i] = lanes[i].abef;
      cdgh[i] = lanes[i].cdgh;
    }
    Rounds<kLanes>(lanes, at);
    for (int i = 0; i < kLanes; ++i) {
      lanes[i].abef = _mm_add_epi32(lanes[i].abef, abef[i]);
      lanes[i].cdgh = _mm_add_epi32(lanes[i].cdgh, cdgh[i]);
      at[i] += kSha256BlockBytes;
    }
  }
  for (int i = 0; i < kLanes; ++i) Store(lanes[i], *words[i]);
}

}  // namespace

bool HasShaInstructions() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool sse41 = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0;
    return sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
  }();
  return has;
}

__attribute__((target("sha,sse4.1"))) void Sha256Blocks(Sha256Words& words, const std::byte* bytes,
                                                        std::size_t blocks) {
  Blocks<1>({&words}, {bytes}, blocks);
}

__attribute__((target("sha,sse4.1"))) void Sha256BlocksOfTwo(Sha256Words& words_a,
                                                             const std::byte* bytes_a,
                                                             Sha256Words& words_b,
                                                             const std::byte* bytes_b,
                                                             std::size_t blocks) {
  Blocks<2>({&words_a, &words_b}, {bytes_a, bytes_b}, blocks);
}

}  // namespace patchbay

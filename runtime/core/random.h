// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A draw is a pure function of (key, counter): no state, no order, the same on
// every machine and device.
#pragma once

#include <array>
#include <cstdint>

#if defined(__CUDACC__)
#define PB_HOST_DEVICE __host__ __device__
#else
#define PB_HOST_DEVICE
#endif

namespace patchbay {

/// A counter of 128 bits, and as many random bits made of it.
struct PhiloxBlock {
  std::uint32_t word[4];
};

/// One block of four words.
PB_HOST_DEVICE inline PhiloxBlock Philox4x32(PhiloxBlock ctr, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * ctr.word[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * ctr.word[2];
    const PhiloxBlock next = {
        {static_cast<std::uint32_t>(p1 >> 32) ^ ctr.word[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ ctr.word[3] ^ k1, static_cast<std::uint32_t>(p0)}};
    ctr = next;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return ctr;
}

/// The use of a stream of draws; part of the counter, so no two uses ever share a number.
enum class DrawStream : std::uint32_t {
  kParameters = 0,
  kField = 1,
  kNoise = 2,
  kPermutation = 3,
  kPosition = 4
};

/// Names one sequence of blocks. ordinal = the patch's place in the epoch (not in the batch, not
/// the worker).
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;  ///< below 2^16
  std::uint64_t ordinal = 0;
  std::uint32_t op_occurrence = 0;  ///< plan::Occurrence of the op, below 2^12
  DrawStream stream = DrawStream::kParameters;
};

/// Block `index` of the sequence. Counter layout: word 0 = index, word 1 = op(12) | stream(4) |
/// epoch(16), words 2..3 = ordinal; key = seed. Every distinct DrawKey and index has a distinct
/// counter.
PB_HOST_DEVICE inline PhiloxBlock Draw(const DrawKey& key, std::uint32_t index) {
  const PhiloxBlock ctr = {
      {index,
       (key.op_occurrence << 20) | (static_cast<std::uint32_t>(key.stream) << 16) |
           (key.epoch & 0xFFFFu),
       static_cast<std::uint32_t>(key.ordinal), static_cast<std::uint32_t>(key.ordinal >> 32)}};
  return Philox4x32(ctr, static_cast<std::uint32_t>(key.seed),
                    static_cast<std::uint32_t>(key.seed >> 32));
}

/// Uniform in (0, 1), exact in float: (x >> 9 + 1/2) * 2^-23.
PB_HOST_DEVICE inline float UniformFloat(std::uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}

/// Integer in [0, n) from 64 random bits (high half of the 128-bit product; bias below n * 2^-64).
inline std::uint64_t UniformBelow(std::uint64_t bits, std::uint64_t n) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

}  // namespace patchbay

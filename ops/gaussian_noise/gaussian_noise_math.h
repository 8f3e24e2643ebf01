// gaussian_noise: standard normals from the words of a Philox block, by Box and Muller's method.
// Templates; include after the target pragma of a variant.
//
// A block has eight: two from each word. The normals of a row of one channel come from the blocks
// ((row * channels + channel) * groups + group) * 16 + lane, where a group is 128 columns and
// normal k of a block belongs to column group * 128 + k * 16 + lane.
#pragma once

#include "ops/gaussian_noise/patch_noise.h"
#include "ops/lanes/float_math.h"

namespace patchbay::ops {

/// Draw's block `index`, one a lane.
template <typename V>
PB_LANE_CODE void NoiseWords(const NoiseKey& noise, typename V::Whole index,
                             typename V::Whole (&word)[4]) {
  using Whole = typename V::Whole;
  word[0] = index;
  for (int i = 0; i < 3; ++i) word[1 + i] = Whole::All(noise.counter[i]);
  std::uint32_t k0 = noise.key[0], k1 = noise.key[1];
  for (int round = 0; round < 10; ++round) {
    Whole high0, low0, high1, low1;
    word[0].Product(0xD2511F53u, high0, low0);
    word[2].Product(0xCD9E8D57u, high1, low1);
    word[0] = high1 ^ word[1] ^ Whole::All(k0);
    word[1] = low1;
    word[2] = high0 ^ word[3] ^ Whole::All(k1);
    word[3] = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/// Two normals. The upper 16 bits are the radius: sqrt(-2 ln u), u = (bits + 1/2) / 2^16, at most
/// 4.86. Bits 15 and 14 are signs, the lowest 14 the angle within a quarter turn.
template <typename V>
PB_LANE_CODE void NormalPair(typename V::Whole word, V& first, V& second) {
  using Whole = typename V::Whole;
  const V u = FusedAdd(word.Right(16).ToFloat(), V::All(0x1p-16f), V::All(0x1p-17f));
  const V radius = Root(BinaryLog(u) * V::All(-1.38629436f));
  // The angle from the middle of its quarter, in eighths of a turn: -1 to 1.
  const V z =
      FusedAdd((word & Whole::All(0x3FFFu)).ToFloat(), V::All(0x1p-13f), V::All(0x1p-14f - 1.0f));
  const V zz = z * z;
  V cosine = V::All(-0.000225482567f);
  cosine = FusedAdd(cosine, zz, V::All(0.0112075824f));
  cosine = FusedAdd(cosine, zz, V::All(-0.21808888f));
  cosine = FusedAdd(cosine, zz, V::All(0.707106769f));
  V sine = V::All(-2.54236766e-05f);
  sine = FusedAdd(sine, zz, V::All(0.00176070095f));
  sine = FusedAdd(sine, zz, V::All(-0.0570956431f));
  sine = FusedAdd(sine, zz, V::All(0.555360377f)) * z;
  const V along = radius * (cosine - sine), across = radius * (cosine + sine);
  const Whole sign = Whole::All(0x80000000u);
  first = (Whole::BitsOf(along) ^ (word.Left(16) & sign)).AsBits();
  second = (Whole::BitsOf(across) ^ (word.Left(17) & sign)).AsBits();
}

/// Row `row`, all channels counted, of `width` values with room for `stride`.
template <typename V>
void ApplyPlaced(const PatchNoise& noise, std::int64_t row, std::int64_t width, std::int64_t stride,
                 float* values) {
  using Whole = typename V::Whole;
  const V std = V::All(noise.std);
  const std::int64_t groups = (width + kNoiseGroup - 1) / kNoiseGroup;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t first = (row * groups + group) * kNoiseLanes;
    for (int lane = 0; lane < kNoiseLanes; lane += V::kLanes) {
      Whole word[4];
      NoiseWords<V>(noise.key, Whole::All(static_cast<std::uint32_t>(first + lane)) + Whole::Iota(),
                    word);
      std::int64_t at = group * kNoiseGroup + lane;
      for (const Whole& w : word) {
        if (at >= stride) break;
        float* const value = values + at;
        V a, b;
        NormalPair<V>(w, a, b);
        FusedAdd(std, a, V::Load(value)).Store(value);
        if (at + kNoiseLanes < stride) {
          FusedAdd(std, b, V::Load(value + kNoiseLanes)).Store(value + kNoiseLanes);
        }
        at += 2 * kNoiseLanes;
      }
    }
  }
}

}  // namespace patchbay::ops

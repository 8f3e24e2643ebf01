// gaussian_noise: standard normals from the words of a Philox block, by Box and Muller's method.
// Templates; include after the target pragma of a variant.
//
// A block has eight, two from each word, for the values of a run. The normals of a row of one
// channel come from the blocks ((row * channels + channel) * groups + group) * 16 + lane, where a
// group is 128 columns and normal k of a block belongs to column group * 128 + k * 16 + lane.
#pragma once

#include <cstdint>

#include "ops/lanes/float_math.h"
#include "ops/steps/step_forms.h"
#include "runtime/core/random.h"

namespace patchbay::ops {

/// The key and counter of Draw, without the block's index.
struct NoiseKey {
  std::uint32_t counter[3] = {}, key[2] = {};
};

inline NoiseKey NoiseKeyOf(const DrawKey& key) {
  return {{(key.op_occurrence << 20) | (static_cast<std::uint32_t>(key.stream) << 16) |
               (key.epoch & 0xFFFFu),
           static_cast<std::uint32_t>(key.ordinal), static_cast<std::uint32_t>(key.ordinal >> 32)},
          {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
}

struct PatchNoise {
  static constexpr StepForm kForm = StepForm::kPlaced;
  float std = 0;  ///< in units of the values; 0: none
  NoiseKey key;
};

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
  const std::int64_t groups = (width + kRunGroup - 1) / kRunGroup;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t first = (row * groups + group) * kRunStep;
    for (int lane = 0; lane < kRunStep; lane += V::kLanes) {
      Whole word[4];
      NoiseWords<V>(noise.key, Whole::All(static_cast<std::uint32_t>(first + lane)) + Whole::Iota(),
                    word);
      std::int64_t at = group * kRunGroup + lane;
      for (const Whole& w : word) {
        if (at >= stride) break;
        float* const value = values + at;
        V a, b;
        NormalPair<V>(w, a, b);
        FusedAdd(std, a, V::Load(value)).Store(value);
        if (at + kRunStep < stride) {
          FusedAdd(std, b, V::Load(value + kRunStep)).Store(value + kRunStep);
        }
        at += 2 * kRunStep;
      }
    }
  }
}

/// Run `run` of all rows, V of one value; its values lie `next` apart.
template <typename V>
PB_LANE_CODE void ApplyToRun(const PatchNoise& noise, std::int64_t run, V* value, int next) {
  typename V::Whole word[4];
  NoiseWords<V>(noise.key, {static_cast<std::uint32_t>(run)}, word);
  const V std{noise.std};
  for (const auto& w : word) {
    V a, b;
    NormalPair<V>(w, a, b);
    value[0] = FusedAdd(std, a, value[0]);
    value[next] = FusedAdd(std, b, value[next]);
    value += 2 * next;
  }
}

}  // namespace patchbay::ops

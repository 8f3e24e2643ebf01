// tissue_mask: the integers behind the threshold. A part of tissue_mask.
#pragma once

#include <array>
#include <cstdint>

#include "absl/numeric/int128.h"

namespace patchbay::ops {

/// Bits of the fraction of a reciprocal.
inline constexpr int kReciprocalBits = 12;

/// 255 / v in 2^-12, rounded to nearest (no v from 1 to 255 makes a tie); 0 for 0.
constexpr std::uint32_t SaturationReciprocal(std::uint32_t v) {
  return v == 0 ? 0 : ((255u << (kReciprocalBits + 1)) / v + 1) / 2;
}

/// entry[v] = SaturationReciprocal(v).
struct SaturationTable {
  std::array<std::uint32_t, 256> entry{};
  constexpr SaturationTable() {
    for (std::uint32_t v = 0; v < 256; ++v) entry[v] = SaturationReciprocal(v);
  }
};
inline constexpr SaturationTable kSaturationTable;

/// 255 (max - min) / max through the reciprocal, rounded: equal to S of OpenCV's RGB2HSV.
constexpr std::uint32_t SaturationOf(std::uint32_t max, std::uint32_t min) {
  return ((max - min) * kSaturationTable.entry[max] + (1u << (kReciprocalBits - 1))) >>
         kReciprocalBits;
}

/// How well a threshold parts a histogram: (n s1 - n1 s)^2 / (n1 (n - n1)), without rounding.
struct Separation {
  absl::uint128 numerator = 0;  ///< up to 2^120
  std::uint64_t denominator = 1;
};

/// a > b, in integers: whole parts first, then the remainders, whose products fit 128 bits.
inline bool Above(const Separation& a, const Separation& b) {
  const absl::uint128 whole_a = a.numerator / a.denominator;
  const absl::uint128 whole_b = b.numerator / b.denominator;
  if (whole_a != whole_b) return whole_a > whole_b;
  const absl::uint128 rest_a = a.numerator % a.denominator, rest_b = b.numerator % b.denominator;
  return rest_a * b.denominator > rest_b * a.denominator;
}

}  // namespace patchbay::ops

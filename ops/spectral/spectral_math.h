// spectral: the formulas that CPU and GPU share. No dependence on the rest of the program, so that
// device code can include it. A part of spectral.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/core/random.h"

namespace patchbay::ops {

/// The weights of gauss7 at distance 1, 2 and 3: exp(-k^2 / 4.5), normalised to sum 1.
inline constexpr float kGaussOne = 0.21674531F, kGaussTwo = 0.11128076F, kGaussThree = 0.03663285F;

/// Coordinate `at` of an image of `side` pixels, reflected at its borders without repeating them;
/// `at` lies less than `side` beyond.
PB_HOST_DEVICE inline std::int64_t Reflected(std::int64_t at, std::int64_t side) {
  if (at < 0) return -at;
  return at >= side ? 2 * side - 2 - at : at;
}

/// The bits of a float and back.
PB_HOST_DEVICE inline std::int32_t BitsOfFloat(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_int(value);
#else
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
#endif
}
PB_HOST_DEVICE inline float FloatOfBits(std::int32_t bits) {
#if defined(__CUDA_ARCH__)
  return __int_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
#endif
}

/// 1024 * 20 log10 of sqrt(power), at least 0, to the nearest whole number. The logarithm's error
/// is below 5e-5 dB, one twentieth of a step. Below 2^17.3 for the powers of a frame.
PB_HOST_DEVICE inline std::uint32_t StepsOfPower(float power) {
  // The mantissa is taken from sqrt(1/2) to sqrt(2); an octave is 10 log10(2) * 1024 steps, and the
  // polynomial is that times log2(1 + t) / t.
  constexpr std::int32_t kHalfRoot = 0x3F3504F3;
  const float clamped = power > 1.0F ? power : 1.0F;
  const std::int32_t bits = BitsOfFloat(clamped) - kHalfRoot;
  const std::int32_t exponent = bits >> 23;
  const std::int32_t mantissa = bits - exponent * (1 << 23) + kHalfRoot;
  const float t = FloatOfBits(mantissa) - 1.0F;
  float sum = 778.837219F;
  sum = fmaf(sum, t, -1216.29724F);
  sum = fmaf(sum, t, 1500.23303F);
  sum = fmaf(sum, t, -2220.1792F);
  sum = fmaf(sum, t, 4446.81494F);
  return static_cast<std::uint32_t>(
      static_cast<std::int32_t>(rintf(fmaf(sum, t, static_cast<float>(exponent) * 3082.5471F))));
}

}  // namespace patchbay::ops

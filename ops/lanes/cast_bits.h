// Float to the bits of every type of finished values, in integer arithmetic that is the same on
// host and device.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/core/random.h"

namespace patchbay::ops {

/// Types of finished values, numbered for device code.
enum class CastTo : std::int32_t { kUint8, kFloat16, kBfloat16, kFloat32 };

PB_HOST_DEVICE inline std::uint32_t FloatBits(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
PB_HOST_DEVICE inline float BitsFloat(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// IEEE binary16, nearest, ties to even; overflow is infinity, NaN stays a quiet NaN, subnormals
/// are kept. The bits of vcvtps2ph and __float2half_rn.
PB_HOST_DEVICE inline std::uint16_t HalfBits(float value) {
  const std::uint32_t bits = FloatBits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) {  // infinity, NaN
    const std::uint32_t payload =
        magnitude > 0x7F800000u ? 0x200u | ((magnitude >> 13) & 0x3FFu) : 0u;
    return static_cast<std::uint16_t>(sign | 0x7C00u | payload);
  }
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // >= 65520
  std::uint32_t kept, dropped, half;
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 102u) return static_cast<std::uint16_t>(sign);  // below 2^-25
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t shift = 126u - exponent;
    kept = mantissa >> shift;
    dropped = mantissa & ((1u << shift) - 1u);
    half = 1u << (shift - 1u);
  } else {
    kept = (magnitude - 0x38000000u) >> 13;
    dropped = magnitude & 0x1FFFu;
    half = 0x1000u;
  }
  if (dropped > half || (dropped == half && (kept & 1u) != 0u)) ++kept;
  return static_cast<std::uint16_t>(sign | kept);
}

/// The value of binary16 bits, exact.
PB_HOST_DEVICE inline float HalfValue(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 31u;
  const std::uint32_t mantissa = half & 0x3FFu;
  if (exponent == 31u) return BitsFloat(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0u) return BitsFloat(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float value = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0u ? -value : value;
}

/// bfloat16, nearest, ties to even; NaN stays a quiet NaN.
PB_HOST_DEVICE inline std::uint16_t Bfloat16Bits(float value) {
  const std::uint32_t bits = FloatBits(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// Nearest, ties to even, clamped to 0..255; NaN is 0.
PB_HOST_DEVICE inline std::uint8_t Uint8Value(float value) {
  if (!(value > 0.0f)) return 0;
  if (value >= 255.0f) return 255;
  const auto whole = static_cast<std::uint32_t>(value);
  const float rest = value - static_cast<float>(whole);
  const bool up = rest > 0.5f || (rest == 0.5f && (whole & 1u) != 0u);
  return static_cast<std::uint8_t>(whole + (up ? 1u : 0u));
}

/// The bits of `value` in the type, in the low bytes.
PB_HOST_DEVICE inline std::uint32_t CastBits(float value, CastTo to) {
  switch (to) {
    case CastTo::kUint8:
      return Uint8Value(value);
    case CastTo::kFloat16:
      return HalfBits(value);
    case CastTo::kBfloat16:
      return Bfloat16Bits(value);
    default:
      return FloatBits(value);
  }
}

/// The value that the low bits of `bits` encode in type `to`.
PB_HOST_DEVICE inline float CastValue(std::uint32_t bits, CastTo to) {
  switch (to) {
    case CastTo::kUint8:
      return static_cast<float>(bits);
    case CastTo::kFloat16:
      return HalfValue(static_cast<std::uint16_t>(bits));
    case CastTo::kBfloat16:
      return BitsFloat(bits << 16);
    default:
      return BitsFloat(bits);
  }
}

}  // namespace patchbay::ops

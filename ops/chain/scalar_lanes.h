// One float as a lane type: the plain path of the CPU, and what kernels use.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/intensity/cast_math.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

struct ScalarLanes {
  static constexpr int kLanes = 1;
  struct Whole;
  float v;

  static PB_LANE_CODE ScalarLanes All(float x) { return {x}; }
  static PB_LANE_CODE ScalarLanes Load(const float* at) { return {*at}; }
  static PB_LANE_CODE ScalarLanes LoadBytes(const std::uint8_t* at) {
    return {static_cast<float>(*at)};
  }
  PB_LANE_CODE void Store(float* at) const { *at = v; }
  /// `bytes` past the caches where the type can; both ends aligned to 64.
  static PB_LANE_CODE void CopyPast(std::byte* to, const std::byte* from, std::int64_t bytes) {
    memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  PB_LANE_CODE void StoreUint8(std::uint8_t* at) const { *at = Uint8Value(v); }
  PB_LANE_CODE void StoreHalf(std::uint16_t* at) const { *at = HalfBits(v); }
  PB_LANE_CODE void StoreBfloat(std::uint16_t* at) const { *at = Bfloat16Bits(v); }
};

/// The integers 0, 1, ... of the lanes, and bits.
struct ScalarLanes::Whole {
  std::uint32_t v;

  static PB_LANE_CODE Whole All(std::uint32_t x) { return {x}; }
  static PB_LANE_CODE Whole Iota() { return {0}; }
  static PB_LANE_CODE Whole BitsOf(ScalarLanes x) { return {FloatBits(x.v)}; }
  /// To nearest, ties to even.
  static PB_LANE_CODE Whole Nearest(ScalarLanes x) {
    return {static_cast<std::uint32_t>(static_cast<std::int32_t>(rintf(x.v)))};
  }
  PB_LANE_CODE ScalarLanes AsBits() const { return {BitsFloat(v)}; }
  /// As a signed integer.
  PB_LANE_CODE ScalarLanes ToFloat() const {
    return {static_cast<float>(static_cast<std::int32_t>(v))};
  }
  PB_LANE_CODE Whole Left(int bits) const { return {v << bits}; }
  PB_LANE_CODE Whole Right(int bits) const { return {v >> bits}; }
  PB_LANE_CODE Whole RightSigned(int bits) const {
    return {static_cast<std::uint32_t>(static_cast<std::int32_t>(v) >> bits)};
  }
  /// Both halves of the product with `factor`.
  PB_LANE_CODE void Product(std::uint32_t factor, Whole& high, Whole& low) const {
    const std::uint64_t product = std::uint64_t{v} * factor;
    high = {static_cast<std::uint32_t>(product >> 32)};
    low = {static_cast<std::uint32_t>(product)};
  }
  /// What the lanes add up to.
  PB_LANE_CODE std::uint64_t Total() const { return v; }
};

PB_LANE_CODE ScalarLanes operator+(ScalarLanes a, ScalarLanes b) { return {a.v + b.v}; }
PB_LANE_CODE ScalarLanes operator-(ScalarLanes a, ScalarLanes b) { return {a.v - b.v}; }
PB_LANE_CODE ScalarLanes operator*(ScalarLanes a, ScalarLanes b) { return {a.v * b.v}; }
PB_LANE_CODE ScalarLanes operator/(ScalarLanes a, ScalarLanes b) { return {a.v / b.v}; }
/// a * b + c, rounded once.
PB_LANE_CODE ScalarLanes FusedAdd(ScalarLanes a, ScalarLanes b, ScalarLanes c) {
  return {fmaf(a.v, b.v, c.v)};
}
PB_LANE_CODE ScalarLanes Min(ScalarLanes a, ScalarLanes b) { return {a.v < b.v ? a.v : b.v}; }
PB_LANE_CODE ScalarLanes Max(ScalarLanes a, ScalarLanes b) { return {a.v > b.v ? a.v : b.v}; }
PB_LANE_CODE ScalarLanes Floor(ScalarLanes a) { return {floorf(a.v)}; }
PB_LANE_CODE ScalarLanes Root(ScalarLanes a) { return {sqrtf(a.v)}; }
PB_LANE_CODE ScalarLanes WhereEqual(ScalarLanes a, ScalarLanes b, ScalarLanes then,
                                    ScalarLanes otherwise) {
  return a.v == b.v ? then : otherwise;
}
PB_LANE_CODE ScalarLanes::Whole operator+(ScalarLanes::Whole a, ScalarLanes::Whole b) {
  return {a.v + b.v};
}
PB_LANE_CODE ScalarLanes::Whole operator-(ScalarLanes::Whole a, ScalarLanes::Whole b) {
  return {a.v - b.v};
}
PB_LANE_CODE ScalarLanes::Whole operator&(ScalarLanes::Whole a, ScalarLanes::Whole b) {
  return {a.v & b.v};
}
PB_LANE_CODE ScalarLanes::Whole operator^(ScalarLanes::Whole a, ScalarLanes::Whole b) {
  return {a.v ^ b.v};
}

/// The pixels of three bytes at base + offset and behind them. No byte from base + last_load + 8 on
/// is read.
PB_LANE_CODE void LoadPairs(const std::uint8_t* base, ScalarLanes::Whole offset,
                            std::uint32_t /*last_load*/, ScalarLanes (&a)[3], ScalarLanes (&b)[3]) {
  for (std::uint32_t c = 0; c < 3; ++c) {
    a[c] = {static_cast<float>(base[offset.v + c])};
    b[c] = {static_cast<float>(base[offset.v + 3 + c])};
  }
}

}  // namespace patchbay::ops

// One float as a lane type, for the plain path of the CPU and for kernels.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/lanes/cast_bits.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// How a lane multiplies. Compilers may fuse a product with the addition that follows, which rounds
/// once instead of twice; translation units of the CPU are built without that.
struct PlainProduct {
  static PB_LANE_CODE float Of(float a, float b) { return a * b; }
  static PB_LANE_CODE double Of(double a, double b) { return a * b; }
};

template <typename Multiply>
struct OneWhole;

template <typename Multiply>
struct OneLane {
  static constexpr int kLanes = 1;
  using Whole = OneWhole<Multiply>;
  float v;

  static PB_LANE_CODE OneLane All(float x) { return {x}; }
  static PB_LANE_CODE OneLane Load(const float* at) { return {*at}; }
  static PB_LANE_CODE OneLane LoadBytes(const std::uint8_t* at) {
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
template <typename Multiply>
struct OneWhole {
  using Lane = OneLane<Multiply>;
  std::uint32_t v;

  static PB_LANE_CODE OneWhole All(std::uint32_t x) { return {x}; }
  static PB_LANE_CODE OneWhole Iota() { return {0}; }
  static PB_LANE_CODE OneWhole BitsOf(Lane x) { return {FloatBits(x.v)}; }
  /// To nearest, ties to even.
  static PB_LANE_CODE OneWhole Nearest(Lane x) {
    return {static_cast<std::uint32_t>(static_cast<std::int32_t>(rintf(x.v)))};
  }
  PB_LANE_CODE Lane AsBits() const { return {BitsFloat(v)}; }
  /// The value, as a signed integer, converted to float.
  PB_LANE_CODE Lane ToFloat() const { return {static_cast<float>(static_cast<std::int32_t>(v))}; }
  PB_LANE_CODE OneWhole Left(int bits) const { return {v << bits}; }
  PB_LANE_CODE OneWhole Right(int bits) const { return {v >> bits}; }
  PB_LANE_CODE OneWhole RightSigned(int bits) const {
    return {static_cast<std::uint32_t>(static_cast<std::int32_t>(v) >> bits)};
  }
  /// Both halves of the product with `factor`.
  PB_LANE_CODE void Product(std::uint32_t factor, OneWhole& high, OneWhole& low) const {
    const std::uint64_t product = std::uint64_t{v} * factor;
    high = {static_cast<std::uint32_t>(product >> 32)};
    low = {static_cast<std::uint32_t>(product)};
  }
  /// The sum of the lanes.
  PB_LANE_CODE std::uint64_t Total() const { return v; }
};

template <typename P>
PB_LANE_CODE OneLane<P> operator+(OneLane<P> a, OneLane<P> b) {
  return {a.v + b.v};
}
template <typename P>
PB_LANE_CODE OneLane<P> operator-(OneLane<P> a, OneLane<P> b) {
  return {a.v - b.v};
}
template <typename P>
PB_LANE_CODE OneLane<P> operator*(OneLane<P> a, OneLane<P> b) {
  return {P::Of(a.v, b.v)};
}
template <typename P>
PB_LANE_CODE OneLane<P> operator/(OneLane<P> a, OneLane<P> b) {
  return {a.v / b.v};
}
/// a * b + c, rounded once.
template <typename P>
PB_LANE_CODE OneLane<P> FusedAdd(OneLane<P> a, OneLane<P> b, OneLane<P> c) {
  return {fmaf(a.v, b.v, c.v)};
}
template <typename P>
PB_LANE_CODE OneLane<P> Min(OneLane<P> a, OneLane<P> b) {
  return {a.v < b.v ? a.v : b.v};
}
template <typename P>
PB_LANE_CODE OneLane<P> Max(OneLane<P> a, OneLane<P> b) {
  return {a.v > b.v ? a.v : b.v};
}
template <typename P>
PB_LANE_CODE OneLane<P> Floor(OneLane<P> a) {
  return {floorf(a.v)};
}
template <typename P>
PB_LANE_CODE OneLane<P> Root(OneLane<P> a) {
  return {sqrtf(a.v)};
}
template <typename P>
PB_LANE_CODE OneLane<P> WhereEqual(OneLane<P> a, OneLane<P> b, OneLane<P> then,
                                   OneLane<P> otherwise) {
  return a.v == b.v ? then : otherwise;
}
template <typename P>
PB_LANE_CODE OneWhole<P> operator+(OneWhole<P> a, OneWhole<P> b) {
  return {a.v + b.v};
}
template <typename P>
PB_LANE_CODE OneWhole<P> operator-(OneWhole<P> a, OneWhole<P> b) {
  return {a.v - b.v};
}
template <typename P>
PB_LANE_CODE OneWhole<P> operator&(OneWhole<P> a, OneWhole<P> b) {
  return {a.v & b.v};
}
template <typename P>
PB_LANE_CODE OneWhole<P> operator^(OneWhole<P> a, OneWhole<P> b) {
  return {a.v ^ b.v};
}

/// One float on the CPU.
using ScalarLanes = OneLane<PlainProduct>;

/// The pixels of three bytes at base + offset and behind them. No byte from base + last_load + 8 on
/// is read.
template <typename P>
PB_LANE_CODE void LoadPairs(const std::uint8_t* base, OneWhole<P> offset,
                            std::uint32_t /*last_load*/, OneLane<P> (&a)[3], OneLane<P> (&b)[3]) {
  for (std::uint32_t c = 0; c < 3; ++c) {
    a[c] = {static_cast<float>(base[offset.v + c])};
    b[c] = {static_cast<float>(base[offset.v + 3 + c])};
  }
}

}  // namespace patchbay::ops

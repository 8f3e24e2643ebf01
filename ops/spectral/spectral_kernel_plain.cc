// The kernel for one value at a time; every vector width must give the same bits.
#include <immintrin.h>

#include "ops/spectral/spectral_variant.h"

namespace patchbay::ops {
namespace {

struct PlainLanes {
  static constexpr int kLanes = 1;
  struct Whole;
  float v;

  static PlainLanes All(float x) { return {x}; }
  static PlainLanes Load(const float* at) { return {*at}; }
  static PlainLanes LoadBytes(const std::uint8_t* at) { return {static_cast<float>(*at)}; }
  void Store(float* at) const { *at = v; }
};

PlainLanes operator+(PlainLanes a, PlainLanes b) { return {a.v + b.v}; }
PlainLanes operator-(PlainLanes a, PlainLanes b) { return {a.v - b.v}; }
PlainLanes operator*(PlainLanes a, PlainLanes b) { return {a.v * b.v}; }
PlainLanes Max(PlainLanes a, PlainLanes b) { return {a.v > b.v ? a.v : b.v}; }
PlainLanes FusedAdd(PlainLanes a, PlainLanes b, PlainLanes c) {
  return {__builtin_fmaf(a.v, b.v, c.v)};
}
PlainLanes FusedSubtract(PlainLanes a, PlainLanes b, PlainLanes c) {
  return {__builtin_fmaf(-a.v, b.v, c.v)};
}
float FirstOf(PlainLanes x) { return x.v; }
float LargestOf(PlainLanes x) { return x.v; }
void AddTo(PlainLanes x, double* at) { *at += x.v; }
void AddRoundedTo(PlainLanes x, std::uint64_t* at) {
  *at += static_cast<std::uint64_t>(_mm_cvtss_si64(_mm_set_ss(x.v)));
}
void Transpose(PlainLanes, const float* in, float* out, int out_stride) {
  for (int r = 0; r < kSpectralLanes; ++r) {
    for (int c = 0; c < kSpectralLanes; ++c) out[c * out_stride + r] = in[r * kSpectralLanes + c];
  }
}

struct PlainLanes::Whole {
  std::int32_t v;

  static Whole All(std::int32_t x) { return {x}; }
  static Whole BitsOf(PlainLanes x) { return {__builtin_bit_cast(std::int32_t, x.v)}; }
  static Whole Nearest(PlainLanes x) { return {_mm_cvtss_si32(_mm_set_ss(x.v))}; }
  PlainLanes AsBits() const { return {__builtin_bit_cast(float, v)}; }
  PlainLanes ToFloat() const { return {static_cast<float>(v)}; }
  Whole RightSigned(int bits) const { return {v >> bits}; }
  Whole Left(int bits) const {
    return {static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << bits)};
  }
  void Store(std::uint32_t* at) const { *at = static_cast<std::uint32_t>(v); }
  std::uint64_t Total() const { return static_cast<std::uint64_t>(v); }
};

PlainLanes::Whole operator+(PlainLanes::Whole a, PlainLanes::Whole b) { return {a.v + b.v}; }
PlainLanes::Whole operator-(PlainLanes::Whole a, PlainLanes::Whole b) { return {a.v - b.v}; }
void StoreShort(PlainLanes::Whole x, std::uint16_t* at) { *at = static_cast<std::uint16_t>(x.v); }
void AddTo(PlainLanes::Whole x, std::uint32_t* at) { *at += static_cast<std::uint32_t>(x.v); }
void AddSquaresTo(PlainLanes::Whole x, std::uint64_t* at) {
  *at += static_cast<std::uint64_t>(x.v) * static_cast<std::uint64_t>(x.v);
}

struct PlainSquares {
  std::uint64_t sum = 0;
  void Add(PlainLanes::Whole q) { AddSquaresTo(q, &sum); }
  std::uint64_t Total() const { return sum; }
};
PlainSquares NoSquares(PlainLanes) { return {}; }

}  // namespace

SpectralKernel PlainSpectralKernel(int frame, bool hann) {
  return KernelOf<PlainLanes>(frame, hann);
}

}  // namespace patchbay::ops

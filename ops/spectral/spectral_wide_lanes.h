// Operations on whole registers that the spectral kernels need beyond wide_lanes.h, written with
// Highway. Include it only where wide_lanes.h may be included. A part of spectral.
#pragma once

#include "ops/lanes/wide_lanes.h"
#include "ops/spectral/spectral_fft.h"
#include "ops/spectral/spectral_kernel.h"

namespace patchbay::ops {
namespace {

using WideTag = WideLanes::Tag;
using WideHalf = hn::Half<WideTag>;
using Wide64 = WideLanes::Whole::Wide;

/// c - a * b, rounded once.
PB_INLINE WideLanes FusedSubtract(WideLanes a, WideLanes b, WideLanes c) {
  return {hn::NegMulAdd(a.v, b.v, c.v)};
}
PB_INLINE float FirstOf(WideLanes x) { return hn::GetLane(x.v); }
PB_INLINE float LargestOf(WideLanes x) { return hn::GetLane(hn::MaxOfLanes(WideTag(), x.v)); }

template <typename Tag, typename Vector, typename T>
PB_INLINE void AddVector(Tag tag, Vector x, T* at) {
  hn::StoreU(hn::Add(hn::LoadU(tag, at), x), tag, at);
}
PB_INLINE void AddTo(WideLanes x, double* at) {
  const hn::Repartition<double, WideTag> tag;
  AddVector(tag, hn::PromoteTo(tag, hn::LowerHalf(WideHalf(), x.v)), at);
  AddVector(tag, hn::PromoteTo(tag, hn::UpperHalf(WideHalf(), x.v)), at + WideLanes::kLanes / 2);
}

/// Half of the lanes in 64 bits.
PB_INLINE hn::Vec<Wide64> LowWide(WideLanes::Whole x) {
  return hn::PromoteTo(Wide64(), hn::LowerHalf(hn::Half<WideLanes::Whole::Tag>(), x.v));
}
PB_INLINE hn::Vec<Wide64> HighWide(WideLanes::Whole x) {
  return hn::PromoteTo(Wide64(), hn::UpperHalf(hn::Half<WideLanes::Whole::Tag>(), x.v));
}

/// Numbers from 0 to 2^63, rounded to nearest.
PB_INLINE void AddRoundedTo(WideLanes x, std::uint64_t* at) {
#if HWY_TARGET == HWY_AVX3
  const hn::Vec<Wide64> low{_mm512_cvtps_epi64(hn::LowerHalf(WideHalf(), x.v).raw)};
  const hn::Vec<Wide64> high{_mm512_cvtps_epi64(hn::UpperHalf(WideHalf(), x.v).raw)};
#else
  // AVX2 converts to 32 bits only. From 2^23 on a float is a whole number: its mantissa, shifted.
  using Whole = WideLanes::Whole;
  const Whole bits = Whole::BitsOf(x);
  const Whole mantissa{hn::Or((bits & Whole::All(0x7FFFFF)).v, Whole::All(0x800000).v)};
  const Whole shift = bits.Right(23) - Whole::All(127 + 23);
  const auto is_large = hn::MaskFromVec(hn::BitCast(
      Whole::Tag(), hn::BroadcastSignBit(hn::BitCast(Whole::Signed(), hn::Not(shift.v)))));
  const Whole small{hn::IfThenZeroElse(is_large, Whole::Nearest(x).v)};
  const Whole large{hn::IfThenElseZero(is_large, mantissa.v)};
  const auto low = hn::Or(hn::Shl(LowWide(large), LowWide(shift)), LowWide(small));
  const auto high = hn::Or(hn::Shl(HighWide(large), HighWide(shift)), HighWide(small));
#endif
  AddVector(Wide64(), low, at);
  AddVector(Wide64(), high, at + WideLanes::kLanes / 2);
}

PB_INLINE void StoreShort(WideLanes::Whole x, std::uint16_t* at) {
  const hn::Rebind<std::uint16_t, WideTag> words;
  hn::StoreU(hn::DemoteTo(words, hn::BitCast(WideLanes::Whole::Signed(), x.v)), words, at);
}
PB_INLINE void AddTo(WideLanes::Whole x, std::uint32_t* at) {
  AddVector(WideLanes::Whole::Tag(), x.v, at);
}
PB_INLINE hn::Vec<Wide64> SquaresOfEven(hn::Vec<WideLanes::Whole::Tag> x) {
  return hn::MulEven(x, x);
}
PB_INLINE void AddSquaresTo(WideLanes::Whole x, std::uint64_t* at) {
  const WideLanes::Whole::Tag tag;
  AddVector(Wide64(), SquaresOfEven(hn::BitCast(tag, LowWide(x))), at);
  AddVector(Wide64(), SquaresOfEven(hn::BitCast(tag, HighWide(x))), at + WideLanes::kLanes / 2);
}

struct WideSquares {
  hn::Vec<Wide64> even = hn::Zero(Wide64()), odd = hn::Zero(Wide64());

  PB_INLINE void Add(WideLanes::Whole q) {
    const auto high =
        hn::BitCast(WideLanes::Whole::Tag(), hn::ShiftRight<32>(hn::BitCast(Wide64(), q.v)));
    even = hn::Add(even, SquaresOfEven(q.v));
    odd = hn::Add(odd, SquaresOfEven(high));
  }
  PB_INLINE std::uint64_t Total() const {
    return hn::GetLane(hn::SumOfLanes(Wide64(), hn::Add(even, odd)));
  }
};
PB_INLINE WideSquares NoSquares(WideLanes) { return {}; }

/// A tile of a register's width: pairs of rows, pairs of pairs, then whole quarters or halves of a
/// register.
PB_INLINE void TransposeTile(const float* in, float* out, int out_stride) {
  constexpr int kWidth = WideLanes::kLanes;
  const WideTag tag;
  const hn::Repartition<double, WideTag> pairs;
  hn::Vec<WideTag> a[kWidth], b[kWidth];
  Unrolled<kWidth / 2>([&](auto i) PB_INLINED {
    constexpr int r = 2 * decltype(i)::value;
    const auto x = hn::Load(tag, in + r * kSpectralLanes);
    const auto y = hn::Load(tag, in + (r + 1) * kSpectralLanes);
    a[r] = hn::InterleaveLower(tag, x, y);
    a[r + 1] = hn::InterleaveUpper(tag, x, y);
  });
  Unrolled<kWidth / 2>([&](auto i) PB_INLINED {
    constexpr int n = decltype(i)::value, r = n / 2 * 4 + n % 2;
    const auto x = hn::BitCast(pairs, a[r]), y = hn::BitCast(pairs, a[r + 2]);
    b[r / 4 * 4 + 2 * (r % 4)] = hn::BitCast(tag, hn::InterleaveLower(pairs, x, y));
    b[r / 4 * 4 + 2 * (r % 4) + 1] = hn::BitCast(tag, hn::InterleaveUpper(pairs, x, y));
  });
  // b[4 r + c]: column c of every quarter, rows 4 r to 4 r + 3.
  Unrolled<4>([&](auto i) PB_INLINED {
    constexpr int c = decltype(i)::value;
    const auto store = [&](int column, hn::Vec<WideTag> x)
                           PB_INLINED { hn::Store(x, tag, out + column * out_stride); };
#if HWY_TARGET == HWY_AVX3
    const __m512 even_low = _mm512_shuffle_f32x4(b[c].raw, b[4 + c].raw, 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(b[c].raw, b[4 + c].raw, 0xDD);
    const __m512 even_high = _mm512_shuffle_f32x4(b[8 + c].raw, b[12 + c].raw, 0x88);
    const __m512 odd_high = _mm512_shuffle_f32x4(b[8 + c].raw, b[12 + c].raw, 0xDD);
    store(c, {_mm512_shuffle_f32x4(even_low, even_high, 0x88)});
    store(4 + c, {_mm512_shuffle_f32x4(odd_low, odd_high, 0x88)});
    store(8 + c, {_mm512_shuffle_f32x4(even_low, even_high, 0xDD)});
    store(12 + c, {_mm512_shuffle_f32x4(odd_low, odd_high, 0xDD)});
#else
    store(c, hn::ConcatLowerLower(tag, b[4 + c], b[c]));
    store(4 + c, hn::ConcatUpperUpper(tag, b[4 + c], b[c]));
#endif
  });
}
PB_INLINE void Transpose(WideLanes, const float* in, float* out, int out_stride) {
  for (int row = 0; row < kSpectralLanes; row += WideLanes::kLanes) {
    for (int column = 0; column < kSpectralLanes; column += WideLanes::kLanes) {
      TransposeTile(in + row * kSpectralLanes + column, out + column * out_stride + row,
                    out_stride);
    }
  }
}

}  // namespace
}  // namespace patchbay::ops

// A whole register of floats as a lane type, in Highway's operations. The including file names the
// processor first (HWY_BASELINE_TARGETS) and stands between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Two intrinsics where Highway 1.0.3 costs more than 5 % of an affine: NearestInt handles overflow,
// and gathers of 64 bits need indices of 64 bits.
#if HWY_TARGET == HWY_AVX3
/// To nearest, ties to even.
PB_LANE_CODE hn::Vec512<std::int32_t> RoundedOf(hn::Vec512<float> x) {
  return {_mm512_cvtps_epi32(x.raw)};
}
/// The eight bytes at each place.
PB_LANE_CODE hn::Vec512<std::uint64_t> EightAt(const void* base, hn::Vec256<std::uint32_t> at) {
  return {_mm512_i32gather_epi64(at.raw, base, 1)};
}
#else
PB_LANE_CODE hn::Vec256<std::int32_t> RoundedOf(hn::Vec256<float> x) {
  return {_mm256_cvtps_epi32(x.raw)};
}
PB_LANE_CODE hn::Vec256<std::uint64_t> EightAt(const void* base, hn::Vec128<std::uint32_t> at) {
  return {_mm256_i32gather_epi64(static_cast<const long long*>(base), at.raw, 1)};  // NOLINT
}
#endif

struct WideLanes {
  using Tag = hn::ScalableTag<float>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
  struct Whole;
  hn::Vec<Tag> v;

  static PB_LANE_CODE WideLanes All(float x) { return {hn::Set(Tag(), x)}; }
  static PB_LANE_CODE WideLanes Load(const float* at) { return {hn::LoadU(Tag(), at)}; }
  static PB_LANE_CODE WideLanes LoadBytes(const std::uint8_t* at) {
    const auto bytes = hn::LoadU(hn::Rebind<std::uint8_t, Tag>(), at);
    return {hn::ConvertTo(Tag(), hn::PromoteTo(hn::Rebind<std::int32_t, Tag>(), bytes))};
  }
  PB_LANE_CODE void Store(float* at) const { hn::StoreU(v, Tag(), at); }
  static PB_LANE_CODE void CopyPast(std::byte* to, const std::byte* from, std::int64_t bytes) {
    const auto* in = reinterpret_cast<const float*>(from);
    auto* out = reinterpret_cast<float*>(to);
    for (std::int64_t i = 0; i < bytes / 4; i += kLanes) {
      hn::Stream(hn::Load(Tag(), in + i), Tag(), out + i);
    }
  }
  PB_LANE_CODE void StoreUint8(std::uint8_t* at) const;
  PB_LANE_CODE void StoreHalf(std::uint16_t* at) const {
    const hn::Rebind<hwy::float16_t, Tag> half;
    hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t*>(at));
  }
  PB_LANE_CODE void StoreBfloat(std::uint16_t* at) const;
};

struct WideLanes::Whole {
  using Tag = hn::Rebind<std::uint32_t, WideLanes::Tag>;
  using Signed = hn::Rebind<std::int32_t, WideLanes::Tag>;
  using Wide = hn::Repartition<std::uint64_t, Tag>;
  hn::Vec<Tag> v;

  static PB_LANE_CODE Whole All(std::uint32_t x) { return {hn::Set(Tag(), x)}; }
  static PB_LANE_CODE Whole Iota() { return {hn::Iota(Tag(), 0)}; }
  static PB_LANE_CODE Whole BitsOf(WideLanes x) { return {hn::BitCast(Tag(), x.v)}; }
  static PB_LANE_CODE Whole Nearest(WideLanes x) { return {hn::BitCast(Tag(), RoundedOf(x.v))}; }
  PB_LANE_CODE WideLanes AsBits() const { return {hn::BitCast(WideLanes::Tag(), v)}; }
  PB_LANE_CODE WideLanes ToFloat() const {
    return {hn::ConvertTo(WideLanes::Tag(), hn::BitCast(Signed(), v))};
  }
  PB_LANE_CODE void Store(std::uint32_t* at) const { hn::StoreU(v, Tag(), at); }
  PB_LANE_CODE Whole Left(int bits) const { return {hn::ShiftLeftSame(v, bits)}; }
  PB_LANE_CODE Whole Right(int bits) const { return {hn::ShiftRightSame(v, bits)}; }
  PB_LANE_CODE Whole RightSigned(int bits) const {
    return {hn::BitCast(Tag(), hn::ShiftRightSame(hn::BitCast(Signed(), v), bits))};
  }
  PB_LANE_CODE void Product(std::uint32_t factor, Whole& high, Whole& low) const {
    const auto by = hn::Set(Tag(), factor);
    const auto even = hn::MulEven(v, by);
    const auto odd =
        hn::MulEven(hn::BitCast(Tag(), hn::ShiftRight<32>(hn::BitCast(Wide(), v))), by);
    high = {hn::OddEven(hn::BitCast(Tag(), odd), hn::BitCast(Tag(), hn::ShiftRight<32>(even)))};
    low = {hn::Mul(v, by)};
  }
  PB_LANE_CODE std::uint64_t Total() const {
    const auto even = hn::And(hn::BitCast(Wide(), v), hn::Set(Wide(), 0xFFFFFFFFu));
    const auto odd = hn::ShiftRight<32>(hn::BitCast(Wide(), v));
    return hn::GetLane(hn::SumOfLanes(Wide(), hn::Add(even, odd)));
  }
};

PB_LANE_CODE WideLanes operator+(WideLanes a, WideLanes b) { return {hn::Add(a.v, b.v)}; }
PB_LANE_CODE WideLanes operator-(WideLanes a, WideLanes b) { return {hn::Sub(a.v, b.v)}; }
PB_LANE_CODE WideLanes operator*(WideLanes a, WideLanes b) { return {hn::Mul(a.v, b.v)}; }
PB_LANE_CODE WideLanes operator/(WideLanes a, WideLanes b) { return {hn::Div(a.v, b.v)}; }
PB_LANE_CODE WideLanes FusedAdd(WideLanes a, WideLanes b, WideLanes c) {
  return {hn::MulAdd(a.v, b.v, c.v)};
}
PB_LANE_CODE WideLanes Min(WideLanes a, WideLanes b) { return {hn::Min(a.v, b.v)}; }
PB_LANE_CODE WideLanes Max(WideLanes a, WideLanes b) { return {hn::Max(a.v, b.v)}; }
PB_LANE_CODE WideLanes Floor(WideLanes a) { return {hn::Floor(a.v)}; }
PB_LANE_CODE WideLanes Root(WideLanes a) { return {hn::Sqrt(a.v)}; }
PB_LANE_CODE WideLanes WhereEqual(WideLanes a, WideLanes b, WideLanes then, WideLanes otherwise) {
  return {hn::IfThenElse(hn::Eq(a.v, b.v), then.v, otherwise.v)};
}
PB_LANE_CODE WideLanes::Whole operator+(WideLanes::Whole a, WideLanes::Whole b) {
  return {hn::Add(a.v, b.v)};
}
PB_LANE_CODE WideLanes::Whole operator-(WideLanes::Whole a, WideLanes::Whole b) {
  return {hn::Sub(a.v, b.v)};
}
PB_LANE_CODE WideLanes::Whole operator&(WideLanes::Whole a, WideLanes::Whole b) {
  return {hn::And(a.v, b.v)};
}
PB_LANE_CODE WideLanes::Whole operator^(WideLanes::Whole a, WideLanes::Whole b) {
  return {hn::Xor(a.v, b.v)};
}

PB_LANE_CODE void WideLanes::StoreUint8(std::uint8_t* at) const {
  const hn::Rebind<std::uint8_t, Tag> bytes;
  const WideLanes within = Min(Max(*this, All(0.0f)), All(255.0f));
  hn::StoreU(hn::DemoteTo(bytes, RoundedOf(within.v)), bytes, at);
}

PB_LANE_CODE void WideLanes::StoreBfloat(std::uint16_t* at) const {
  const hn::Rebind<std::uint16_t, Tag> words;
  const Whole bits = Whole::BitsOf(*this), odd = bits.Right(16) & Whole::All(1);
  const auto rounded = (bits + (odd + Whole::All(0x7FFF))).AsBits().v;
  const auto quiet = hn::Or(v, Whole::All(0x400000).AsBits().v);
  const Whole chosen = Whole::BitsOf({hn::IfThenElse(hn::IsNaN(v), quiet, rounded)}).Right(16);
  hn::StoreU(hn::DemoteTo(words, hn::BitCast(Whole::Signed(), chosen.v)), words, at);
}

/// The pixels of three bytes at base + offset and behind them. No byte from base + last_load + 8 on
/// is read.
PB_LANE_CODE void LoadPairs(const std::uint8_t* base, WideLanes::Whole offset,
                            std::uint32_t last_load, WideLanes (&a)[3], WideLanes (&b)[3]) {
  using Whole = WideLanes::Whole;
  const Whole at{hn::Min(offset.v, Whole::All(last_load).v)};
  const hn::Half<Whole::Tag> half;
  auto low = EightAt(base, hn::LowerHalf(half, at.v));
  auto high = EightAt(base, hn::UpperHalf(half, at.v));
  if (!hn::AllTrue(Whole::Tag(), hn::Eq(offset.v, at.v))) {
    const Whole past = (offset - at).Left(3);
    low = hn::Shr(low, hn::PromoteTo(Whole::Wide(), hn::LowerHalf(half, past.v)));
    high = hn::Shr(high, hn::PromoteTo(Whole::Wide(), hn::UpperHalf(half, past.v)));
  }
  const auto halves = [](auto x) HWY_ATTR { return hn::BitCast(Whole::Tag(), x); };
  const Whole first{hn::ConcatEven(Whole::Tag(), halves(high), halves(low))};
  const Whole second{hn::ConcatOdd(Whole::Tag(), halves(high), halves(low))};
  const Whole byte = Whole::All(255);
  a[0] = (first & byte).ToFloat();
  a[1] = (first.Right(8) & byte).ToFloat();
  a[2] = (first.Right(16) & byte).ToFloat();
  b[0] = first.Right(24).ToFloat();
  b[1] = (second & byte).ToFloat();
  b[2] = (second.Right(8) & byte).ToFloat();
}

/// Four bytes at each offset.
PB_LANE_CODE WideLanes::Whole LoadFour(const void* base, WideLanes::Whole offset) {
  using Whole = WideLanes::Whole;
  return {hn::GatherOffset(Whole::Tag(), static_cast<const std::uint32_t*>(base),
                           hn::BitCast(Whole::Signed(), offset.v))};
}

/// Voxels `index` and `index` + 1 of each lane, of up to 2^28. No voxel from `count` on is read.
PB_LANE_CODE void LoadVoxelPair(const std::int16_t* voxels, WideLanes::Whole index,
                                std::uint32_t /*count*/, WideLanes& a, WideLanes& b) {
  const WideLanes::Whole pair = LoadFour(voxels, index.Left(1));
  a = pair.Left(16).RightSigned(16).ToFloat();
  b = pair.RightSigned(16).ToFloat();
}
PB_LANE_CODE void LoadVoxelPair(const std::uint16_t* voxels, WideLanes::Whole index,
                                std::uint32_t /*count*/, WideLanes& a, WideLanes& b) {
  const WideLanes::Whole pair = LoadFour(voxels, index.Left(1));
  a = (pair & WideLanes::Whole::All(0xFFFF)).ToFloat();
  b = pair.Right(16).ToFloat();
}
/// Loads four bytes; at the end of the block those before it. Needs four voxels.
PB_LANE_CODE void LoadVoxelPair(const std::uint8_t* voxels, WideLanes::Whole index,
                                std::uint32_t count, WideLanes& a, WideLanes& b) {
  using Whole = WideLanes::Whole;
  const Whole at{hn::Min(index.v, Whole::All(count - 4).v)}, byte = Whole::All(255);
  const Whole four{hn::Shr(LoadFour(voxels, at).v, (index - at).Left(3).v)};
  a = (four & byte).ToFloat();
  b = (four.Right(8) & byte).ToFloat();
}
PB_LANE_CODE void LoadVoxelPair(const float* voxels, WideLanes::Whole index,
                                std::uint32_t /*count*/, WideLanes& a, WideLanes& b) {
  a = LoadFour(voxels, index.Left(2)).AsBits();
  b = LoadFour(voxels + 1, index.Left(2)).AsBits();
}

}  // namespace
}  // namespace patchbay::ops

// The AVX2 path: widen eight bytes, one fused multiply-add or two, round to the output type.
#define HWY_BASELINE_TARGETS HWY_AVX2
#define HWY_COMPILE_ONLY_STATIC
#include <algorithm>

#include "hwy/highway.h"
#include "ops/chain/chain_rows.h"

HWY_BEFORE_NAMESPACE();
namespace patchbay::ops {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::FixedTag<float, 8>;
using Integers = hn::RebindToSigned<Floats>;
using Sixteen = hn::FixedTag<std::uint8_t, 16>;

bool Aligned(const std::byte* at, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
}

/// No NaN comes here: the inputs are 0..255 and the line is finite.
hn::Vec<hn::Rebind<std::uint16_t, Floats>> BfloatBits(hn::Vec<Floats> value) {
  const hn::RebindToUnsigned<Floats> tag;
  const auto bits = hn::BitCast(tag, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(tag, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(tag, 0x7FFF)));
  return hn::DemoteTo(hn::Rebind<std::uint16_t, Floats>(),
                      hn::BitCast(Integers(), hn::ShiftRight<16>(rounded)));
}

/// Rounds to Element (uint16_t: bfloat16) and stores, past the caches where kStream.
template <typename Element, bool kStream>
void Put(hn::Vec<Floats> value, std::byte* out) {
  const hn::Rebind<Element, Floats> tag;
  auto* at = reinterpret_cast<Element*>(out);
  const auto rounded = [&] {
    if constexpr (std::is_same_v<Element, float>) return value;
    if constexpr (std::is_same_v<Element, std::uint16_t>) return BfloatBits(value);
    if constexpr (std::is_same_v<Element, hwy::float16_t>) return hn::DemoteTo(tag, value);
  }();
  if constexpr (kStream) {
    hn::Stream(rounded, tag, at);
  } else {
    hn::StoreU(rounded, tag, at);
  }
}

/// Eight values by a line: value i is of channel (first + i * step) % 3.
struct OneLine {
  hn::Vec<Floats> slope, offset;

  OneLine(const std::array<AffineLine, 3>& lines, std::size_t first, std::size_t step) {
    alignas(32) float slopes[8], offsets[8];
    for (std::size_t i = 0; i < 8; ++i) {
      slopes[i] = lines[(first + i * step) % 3].slope;
      offsets[i] = lines[(first + i * step) % 3].offset;
    }
    slope = hn::Load(Floats(), slopes);
    offset = hn::Load(Floats(), offsets);
  }
  OneLine(const AffineRow& affine, std::size_t first, std::size_t step)
      : OneLine(affine.line, first, step) {}

  hn::Vec<Floats> Of(hn::Vec<Floats> x) const { return hn::MulAdd(x, slope, offset); }
  hn::Vec<Floats> At(hn::Vec<Integers> x) const { return Of(hn::ConvertTo(Floats(), x)); }
};

/// Eight values by a line and its rest.
struct LinePair {
  OneLine line, rest;

  LinePair(const AffineRow& affine, std::size_t first, std::size_t step)
      : line(affine.line, first, step), rest(affine.rest, first, step) {}

  hn::Vec<Floats> At(hn::Vec<Integers> x) const {
    const auto value = hn::ConvertTo(Floats(), x);
    return hn::Add(line.Of(value), rest.Of(value));
  }
};

/// Eight pixels are loaded as two halves of 16 bytes, from byte 0 and from byte 8, so that nothing
/// past their 24 bytes is read. The places pick one channel of each into 32-bit lanes; mirrored,
/// the halves are swapped and each is read backwards.
hn::Vec<hn::Repartition<std::uint8_t, Floats>> ChannelPlaces(int channel, bool mirrored) {
  alignas(32) std::uint8_t places[32];
  for (std::uint8_t& place : places) place = 0x80;  // a byte 0
  for (int pixel = 0; pixel < 4; ++pixel) {
    const int from = mirrored ? 3 - pixel : pixel;
    places[4 * pixel] = static_cast<std::uint8_t>((mirrored ? 4 : 0) + 3 * from + channel);
    places[16 + 4 * pixel] = static_cast<std::uint8_t>((mirrored ? 0 : 4) + 3 * from + channel);
  }
  return hn::Load(hn::Repartition<std::uint8_t, Floats>(), places);
}

template <typename Element, typename Line>
std::int64_t PlanarRow(const ByteRow& pixels, const AffineRow& affine) {
  const hn::Vec<hn::Repartition<std::uint8_t, Floats>> places[3] = {
      ChannelPlaces(0, pixels.mirrored), ChannelPlaces(1, pixels.mirrored),
      ChannelPlaces(2, pixels.mirrored)};
  const Line line[3] = {Line(affine, 0, 0), Line(affine, 1, 0), Line(affine, 2, 0)};
  const std::int64_t low = pixels.mirrored ? 8 : 0, high = pixels.mirrored ? 0 : 8;
  std::int64_t x = 0;
  for (; x + kAvx2Pixels <= pixels.width; x += kAvx2Pixels) {
    const std::uint8_t* at =
        pixels.row + 3 * (pixels.mirrored ? pixels.width - kAvx2Pixels - x : x);
    const auto eight = hn::Combine(hn::Repartition<std::uint8_t, Floats>(),
                                   hn::LoadU(Sixteen(), at + high), hn::LoadU(Sixteen(), at + low));
    for (int c = 0; c < 3; ++c) {
      const auto channel = hn::BitCast(Integers(), hn::TableLookupBytesOr0(eight, places[c]));
      Put<Element, false>(line[c].At(channel),
                          pixels.out + c * pixels.plane_bytes + x * std::int64_t{sizeof(Element)});
    }
  }
  return x;
}

/// Rows for planes are finished in the first-level cache, and leave it a plane at a time: stores
/// past the caches that take turns between planes leave in parts of lines.
template <typename Element, typename Line>
std::int64_t StreamPlanes(const ByteRow& pixels, const AffineRow& affine) {
  constexpr std::int64_t kRun = 256;
  alignas(64) std::byte room[3][kRun * sizeof(Element)];
  const hn::FixedTag<std::uint8_t, 32> bytes;
  std::int64_t x = 0;
  while (x + kAvx2Pixels <= pixels.width) {
    const std::int64_t count = std::min(kRun, (pixels.width - x) / kAvx2Pixels * kAvx2Pixels);
    ByteRow run = pixels;
    run.row = pixels.row + 3 * (pixels.mirrored ? pixels.width - count - x : x);
    run.width = count;
    run.out = room[0];
    run.plane_bytes = sizeof room[0];
    PlanarRow<Element, Line>(run, affine);
    const std::int64_t size = count * std::int64_t{sizeof(Element)};
    for (int c = 0; c < 3; ++c) {
      auto* out = reinterpret_cast<std::uint8_t*>(pixels.out + c * pixels.plane_bytes +
                                                  x * std::int64_t{sizeof(Element)});
      const auto* from = reinterpret_cast<const std::uint8_t*>(room[c]);
      std::int64_t i = 0;
      for (; i + 32 <= size; i += 32) hn::Stream(hn::Load(bytes, from + i), bytes, out + i);
      for (; i < size; i += 16) hn::Stream(hn::Load(Sixteen(), from + i), Sixteen(), out + i);
    }
    x += count;
  }
  return x;
}

template <typename Element, typename Line, bool kStream>
std::int64_t InterleavedRow(const ByteRow& pixels, const AffineRow& affine) {
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const Line line[3] = {Line(affine, 0, 1), Line(affine, 8, 1), Line(affine, 16, 1)};
  std::int64_t x = 0;
  for (; x + kAvx2Pixels <= pixels.width; x += kAvx2Pixels) {
    for (std::int64_t phase = 0; phase < 3; ++phase) {
      const std::int64_t element = 3 * x + 8 * phase;
      const auto eight = hn::PromoteTo(Integers(), hn::LoadU(bytes, pixels.row + element));
      Put<Element, kStream>(line[phase].At(eight),
                            pixels.out + element * std::int64_t{sizeof(Element)});
    }
  }
  return x;
}

template <typename Element, typename Line>
std::int64_t Row(const ByteRow& pixels, const AffineRow& affine, bool planar) {
  const std::size_t store_bytes = planar ? 32 : 8 * sizeof(Element);
  const bool aligned = Aligned(pixels.out, store_bytes) &&
                       (!planar || static_cast<std::size_t>(pixels.plane_bytes) % 32 == 0);
  if (pixels.stream && aligned) {
    return planar ? StreamPlanes<Element, Line>(pixels, affine)
                  : InterleavedRow<Element, Line, true>(pixels, affine);
  }
  return planar ? PlanarRow<Element, Line>(pixels, affine)
                : InterleavedRow<Element, Line, false>(pixels, affine);
}

template <typename Line>
std::int64_t RowOf(const ByteRow& pixels, const AffineRow& affine, CastTo to, bool planar) {
  switch (to) {
    case CastTo::kFloat16:
      return Row<hwy::float16_t, Line>(pixels, affine, planar);
    case CastTo::kBfloat16:
      return Row<std::uint16_t, Line>(pixels, affine, planar);
    case CastTo::kFloat32:
      return Row<float, Line>(pixels, affine, planar);
    default:
      return 0;
  }
}

}  // namespace

std::int64_t MakeRowAvx2(const ByteRow& pixels, const AffineRow& affine, CastTo to, bool planar) {
  return affine.has_rest ? RowOf<LinePair>(pixels, affine, to, planar)
                         : RowOf<OneLine>(pixels, affine, to, planar);
}

std::int64_t SplitRowAvx2(const ByteRow& pixels) {
  constexpr std::int64_t kPixels = 16;
  std::int64_t x = 0;
  for (; x + kPixels <= pixels.width; x += kPixels) {
    hn::Vec<Sixteen> plane[3];
    hn::LoadInterleaved3(Sixteen(), pixels.row + 3 * x, plane[0], plane[1], plane[2]);
    for (int c = 0; c < 3; ++c) {
      auto* out = reinterpret_cast<std::uint8_t*>(pixels.out + c * pixels.plane_bytes + x);
      hn::StoreU(plane[c], Sixteen(), out);
    }
  }
  return x;
}

}  // namespace patchbay::ops
HWY_AFTER_NAMESPACE();

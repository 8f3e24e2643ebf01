// Converts interleaved colours to the values that spectral analyses: in whole registers up to the
// rows' ends, the rest pixel by pixel. All integers, so every path gives the same.
#define HWY_BASELINE_TARGETS HWY_AVX2
#define HWY_COMPILE_ONLY_STATIC
#include "hwy/highway.h"
#include "ops/colour/grey_math.h"
#include "ops/spectral/spectral_frames.h"

HWY_BEFORE_NAMESPACE();
namespace patchbay::ops {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::FixedTag<std::uint8_t, 16>;
using Words = hn::FixedTag<std::int16_t, 16>;
using Sums = hn::FixedTag<std::int32_t, 8>;

constexpr std::int64_t kPixels = 16;  // pixels of a step
/// Four pixels are loaded as 16 bytes, the last four of which are the next pixels': a step reads
/// that many pixels beyond its own.
constexpr std::int64_t kBeyond = 2;
/// The weights of GreyOf.
constexpr int kRed = 9798, kGreen = 19235, kBlue = 3735, kShift = 15;

/// Where the two words of each of four pixels begin in their twelve bytes; 0x80: a byte 0.
struct Places {
  alignas(32) std::uint8_t at[32];
};
constexpr Places PlacesOf(int first, int second) {
  Places places{};
  for (int i = 0; i < 32; ++i) {
    const int channel = i % 4 == 0 ? first : i % 4 == 2 ? second : -1;
    places.at[i] = static_cast<std::uint8_t>(channel < 0 ? 0x80 : i % 16 / 4 * 3 + channel);
  }
  return places;
}
constexpr Places kRedGreen = PlacesOf(0, 1), kBlueAlone = PlacesOf(2, -1);

/// first x weight + second x weight of each pixel, exact in 32 bits.
hn::Vec<Sums> Weighed(hn::Vec<hn::Repartition<std::uint8_t, Sums>> rgb, const Places& places,
                      int first, int second) {
  const hn::Repartition<std::uint8_t, Sums> bytes;
  const auto words = hn::BitCast(Words(), hn::TableLookupBytesOr0(rgb, hn::Load(bytes, places.at)));
  const auto weights = hn::BitCast(Words(), hn::Set(Sums(), first | second << 16));
  auto unused = hn::Zero(Sums());
  return hn::ReorderWidenMulAccumulate(Sums(), words, weights, hn::Zero(Sums()), unused);
}

/// Four pixels at `low` and four at `high`.
hn::Vec<Sums> GreyOfEight(const std::uint8_t* low, const std::uint8_t* high) {
  const hn::Repartition<std::uint8_t, Sums> bytes;
  const auto rgb = hn::Combine(bytes, hn::LoadU(Bytes(), high), hn::LoadU(Bytes(), low));
  const auto sum =
      hn::Add(Weighed(rgb, kRedGreen, kRed, kGreen), Weighed(rgb, kBlueAlone, kBlue, 0));
  return hn::ShiftRight<kShift>(hn::Add(sum, hn::Set(Sums(), 1 << (kShift - 1))));
}

/// Both packs work within 16 bytes: the order of the pixels that are loaded makes up for it.
void GreyOfSixteen(const std::uint8_t* rgb, std::uint8_t* grey) {
  const auto words =
      hn::ReorderDemote2To(Words(), GreyOfEight(rgb, rgb + 24), GreyOfEight(rgb + 12, rgb + 36));
  hn::StoreU(hn::DemoteTo(Bytes(), words), Bytes(), grey);
}

}  // namespace

void GreyOfRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey) {
  std::int64_t i = 0;
  for (; i + kPixels + kBeyond <= pixels; i += kPixels) GreyOfSixteen(rgb + 3 * i, grey + i);
  for (; i < pixels; ++i) {
    grey[i] = static_cast<std::uint8_t>(GreyOf(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
  }
}

void SplitRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* red, std::uint8_t* green,
              std::uint8_t* blue) {
  std::int64_t i = 0;
  for (; i + kPixels <= pixels; i += kPixels) {
    hn::Vec<Bytes> planes[3];
    hn::LoadInterleaved3(Bytes(), rgb + 3 * i, planes[0], planes[1], planes[2]);
    hn::StoreU(planes[0], Bytes(), red + i);
    hn::StoreU(planes[1], Bytes(), green + i);
    hn::StoreU(planes[2], Bytes(), blue + i);
  }
  for (; i < pixels; ++i) {
    red[i] = rgb[3 * i];
    green[i] = rgb[3 * i + 1];
    blue[i] = rgb[3 * i + 2];
  }
}

}  // namespace patchbay::ops
HWY_AFTER_NAMESPACE();

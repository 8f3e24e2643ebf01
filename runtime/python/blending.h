// Sums of weighted probabilities of overlapping patches, in integers: any order of addition gives
// the same bits. No Python, C library only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace patchbay::python {

/// Probabilities are whole multiples of 1 / kWhole from here on.
inline constexpr std::uint32_t kWhole = 8191;
/// The weights of one pixel add up to this at most, so that their sums with probabilities fit 32
/// bits.
inline constexpr std::uint32_t kMostWeight = 0xFFFFFFFFU / kWhole;
/// A uint8 pixel of probability 1; kUncovered is one that no patch covered.
inline constexpr std::uint32_t kUint8Whole = 254;
inline constexpr std::uint8_t kUncovered = 255;
/// NaN as a float16, which is such a pixel there.
inline constexpr std::uint16_t kNan = 0x7E00;

/// z, y, x.
using Extent3 = std::array<std::int64_t, 3>;

/// Where a patch lies over a tile. Nothing outside of either is touched.
struct PatchPlace {
  Extent3 origin;      ///< the patch's, in pixels of the tile; it may lie outside
  Extent3 first, end;  ///< the pixels of the patch that count
};

/// The patches of one batch, (patch, channel, z, y, x) in C order, that touch a tile, (channel, z,
/// y, x), and the weights of a patch's pixels.
struct BlendBatch {
  std::size_t channels;
  Extent3 tile, patch;  ///< their extents
  const float* probabilities;
  const std::uint32_t* weights;
};

/// Rounds probabilities to multiples of 1 / kWhole, halves up, and adds probability x weight of the
/// patches `numbers` of the batch, each at its place, to `sums`. False where one is not within 0
/// and 1: the sums are useless then.
bool AddToTile(const BlendBatch& batch, std::span<const std::size_t> numbers,
               std::span<const PatchPlace> places, std::uint32_t* sums);

/// Adds the weights of patches at `places` to `sums`, (z, y, x). False where those of a pixel add
/// up to more than kMostWeight.
bool AddWeights(const BlendBatch& batch, std::span<const PatchPlace> places, std::uint32_t* sums);

/// Weighted means of `pixels` pixels, as multiples of 1 / kUint8Whole, nearest, kUncovered where
/// the weight is 0; or as the bits of the nearest float16, of even ones at a tie, kNan there. The
/// sums become 0.
void FinishTile(std::uint32_t* sums, const std::uint32_t* weights, std::size_t channels,
                std::size_t pixels, std::uint8_t* out);
void FinishTile(std::uint32_t* sums, const std::uint32_t* weights, std::size_t channels,
                std::size_t pixels, std::uint16_t* out);

/// Means of 2 x 2 x 2 pixels of such values (2 x 2, of one plane), of those that are covered:
/// nearest, halves up, or the nearest float16. `out` has half of each extent, rounded up.
void Halve(const std::uint8_t* in, std::size_t channels, const Extent3& extent, std::uint8_t* out);
void Halve(const std::uint16_t* in, std::size_t channels, const Extent3& extent,
           std::uint16_t* out);

}  // namespace patchbay::python

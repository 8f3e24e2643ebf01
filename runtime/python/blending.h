// Sums of weighted probabilities of overlapping patches, in integers: any order of addition gives
// the same bits. No Python, C library only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace patchbay::python {

/// Probabilities are whole multiples of 1 / kWhole from here on.
inline constexpr std::uint32_t kWhole = 8191;
/// The weights of one pixel add up to this at most, so that their sums with probabilities fit 32
/// bits.
inline constexpr std::uint32_t kMostWeight = 0xFFFFFFFFU / kWhole;
/// A uint8 pixel of probability 1; kUncovered is one that no patch covered.
inline constexpr std::uint32_t kUint8Whole = 254;
inline constexpr std::uint8_t kUncovered = 255;

/// Rounds `count` probabilities to multiples of 1 / kWhole, halves up. Returns the index of the
/// first one that is not within 0 and 1, or `count`; `out` is undefined behind it.
std::size_t RoundProbabilities(const float* values, std::size_t count, std::uint16_t* out);

/// z, y, x.
using Extent3 = std::array<std::size_t, 3>;

/// The part of a patch that lies in a tile. Tiles and patches are in C order, (channel, z, y, x).
struct BlendPart {
  std::size_t channels;
  Extent3 tile, patch;        ///< their extents
  Extent3 in_tile, in_patch;  ///< first pixel of the part
  Extent3 size;
};

/// Adds probability x weight to the first `channels` planes of `sums`, and the weight to the plane
/// behind them. False when the weights of a pixel exceed kMostWeight; the sums are useless then.
bool AddToTile(const BlendPart& part, const std::uint16_t* probabilities,
               const std::uint32_t* weights, std::uint32_t* sums);

/// Weighted means of `pixels` pixels as multiples of 1 / kUint8Whole, nearest, kUncovered where the
/// weight is 0.
void FinishTile(const std::uint32_t* sums, std::size_t channels, std::size_t pixels,
                std::uint8_t* out);

}  // namespace patchbay::python

#include "runtime/python/blending.h"

#include <algorithm>
#include <array>
#include <bit>

// One function for every processor, chosen when the module is loaded: the arithmetic is of
// integers, or of single operations that IEEE 754 defines.
#define PATCHBAY_FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))

namespace patchbay::python {
namespace {

std::int64_t At(const Extent3& extent, std::int64_t z, std::int64_t y, std::int64_t x) {
  return (z * extent[1] + y) * extent[2] + x;
}

std::int64_t Pixels(const Extent3& extent) { return extent[0] * extent[1] * extent[2]; }

/// Whether all are probabilities. Compared as integers, in which every compiler finds the vectors.
PATCHBAY_FOR_EACH_PROCESSOR bool AddRow(const float* probabilities, const std::uint32_t* weights,
                                        std::size_t count, std::uint32_t* sums) {
  constexpr auto kOne = std::bit_cast<std::int32_t>(1.0F);
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(probabilities[i] + 0.0F);  // -0 becomes 0
    const std::uint32_t good = -static_cast<std::uint32_t>((bits >= 0) & (bits <= kOne));
    bad |= ~good;
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits) & good);
    const float whole = value * static_cast<float>(kWhole) + 0.5F;
    sums[i] += static_cast<std::uint32_t>(static_cast<std::int32_t>(whole)) * weights[i];
  }
  return bad == 0;
}

/// The largest sum of weights in the row.
PATCHBAY_FOR_EACH_PROCESSOR std::uint32_t AddWeights(const std::uint32_t* weights,
                                                     std::size_t count, std::uint32_t* sums) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] += weights[i];
    most = sums[i] > most ? sums[i] : most;
  }
  return most;
}

constexpr std::size_t kBlock =
    1024;  // pixels that are finished together: their sums stay in the cache

/// One division a pixel, whatever the channels: sum / weight x kUint8Whole / kWhole is sum x
/// factor. Its error, below 2^-43, stays below kTie, and kTie below the distance of a mean from a
/// half that it is not, 2^-33.
constexpr double kTie = 0x1p-36;

PATCHBAY_FOR_EACH_PROCESSOR void Factors(const std::uint32_t* weights, std::size_t pixels,
                                         double* factors) {
  for (std::size_t i = 0; i < pixels; ++i) {
    const double weight = weights[i] == 0 ? 1.0 : static_cast<double>(weights[i]);
    factors[i] = kUint8Whole / (weight * kWhole);
  }
}

PATCHBAY_FOR_EACH_PROCESSOR void Divide(const std::uint32_t* sums, const std::uint32_t* weights,
                                        const double* factors, std::size_t pixels,
                                        std::uint8_t* out) {
  for (std::size_t i = 0; i < pixels; ++i) {
    const double value = static_cast<double>(sums[i]) * factors[i] + (0.5 + kTie);
    const auto rounded = static_cast<std::uint8_t>(static_cast<std::int32_t>(value));
    out[i] = weights[i] == 0 ? kUncovered : rounded;
  }
}

/// The bits of the nearest float16 of 0 to 1, the even one of two.
inline std::uint16_t HalfOf(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t normal = ((bits + 0x1FF'FFFF'FFFF + (bits >> 42 & 1)) >> 42) - (1008U << 10);
  // Below 2^-14 they are multiples of 2^-24, and so are numbers around 2^28.
  const std::uint64_t small = std::bit_cast<std::uint64_t>(value + 0x1p28);
  return static_cast<std::uint16_t>(value < 0x1p-14 ? small : normal);
}

PATCHBAY_FOR_EACH_PROCESSOR void DivideToHalf(const std::uint32_t* sums,
                                              const std::uint32_t* weights, std::size_t pixels,
                                              std::uint16_t* out) {
  for (std::size_t i = 0; i < pixels; ++i) {
    const double weight = weights[i] == 0 ? 1.0 : static_cast<double>(weights[i]);
    const std::uint16_t half = HalfOf(static_cast<double>(sums[i]) / (weight * kWhole));
    out[i] = weights[i] == 0 ? kNan : half;
  }
}

/// `divide(at, weights, count)` for all pixels, whose sums become 0.
template <typename Divide>
void Finish(std::uint32_t* sums, std::size_t channels, std::size_t pixels, Divide divide) {
  for (std::size_t at = 0; at < pixels; at += kBlock) {
    const std::size_t count = std::min(kBlock, pixels - at);
    divide(at, sums + channels * pixels + at, count);
    for (std::size_t c = 0; c <= channels; ++c) std::fill_n(sums + c * pixels + at, count, 0U);
  }
}

/// The mean of pixels of uint8, whose total is `total`. Exact: quotients of such numbers are whole,
/// or an eighth or more below the next whole one.
inline std::uint8_t MeanOf(std::uint32_t total, std::int32_t count, std::uint8_t /*like*/) {
  const auto mean = static_cast<float>(static_cast<std::int32_t>(total) + count / 2) /
                    static_cast<float>(count == 0 ? 1 : count);
  return count == 0 ? kUncovered : static_cast<std::uint8_t>(static_cast<std::int32_t>(mean));
}

inline std::uint16_t MeanOf(double total, std::int32_t count, std::uint16_t /*like*/) {
  return count == 0 ? kNan : HalfOf(total / static_cast<double>(count == 0 ? 1 : count));
}

inline std::uint32_t ValueOf(std::uint8_t pixel) { return pixel; }

inline double ValueOf(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 13) * 0x1p112F;
}

inline bool IsCovered(std::uint8_t pixel) { return pixel != kUncovered; }
inline bool IsCovered(std::uint16_t half) { return half <= 0x7C00; }

/// One row of means of four, nullptr for one that is not there.
template <typename Pixel>
[[gnu::always_inline]] inline void HalveRows(const std::array<const Pixel*, 4>& rows,
                                             std::size_t width, Pixel* out) {
  constexpr std::size_t kAcross = 256;
  constexpr Pixel kNone = sizeof(Pixel) == 1 ? kUncovered : kNan;
  std::array<std::array<Pixel, kAcross>, 4> block;
  std::array<Pixel, kAcross / 2> means;
  for (std::size_t x = 0; x < width; x += kAcross) {
    const std::size_t count = std::min(kAcross, width - x);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      block[r].fill(kNone);
      if (rows[r] != nullptr) std::copy_n(rows[r] + x, count, block[r].data());
    }
    for (std::size_t i = 0; i < means.size(); ++i) {
      decltype(ValueOf(kNone)) total = 0;
      std::int32_t covered = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t k = 2 * i; k < 2 * i + 2; ++k) {
          const Pixel pixel = block[r][k];
          total += IsCovered(pixel) ? ValueOf(pixel) : 0;
          covered += IsCovered(pixel) ? 1 : 0;
        }
      }
      means[i] = MeanOf(total, covered, kNone);
    }
    std::copy_n(means.data(), (count + 1) / 2, out + x / 2);
  }
}

PATCHBAY_FOR_EACH_PROCESSOR void HalveRow(const std::array<const std::uint8_t*, 4>& rows,
                                          std::size_t width, std::uint8_t* out) {
  HalveRows(rows, width, out);
}

PATCHBAY_FOR_EACH_PROCESSOR void HalveRow(const std::array<const std::uint16_t*, 4>& rows,
                                          std::size_t width, std::uint16_t* out) {
  HalveRows(rows, width, out);
}

template <typename Pixel>
void HalveAll(const Pixel* in, std::size_t channels, const Extent3& extent, Pixel* out) {
  const std::int64_t width = extent[2];
  for (std::size_t c = 0; c < channels; ++c) {
    const Pixel* plane = in + c * Pixels(extent);
    for (std::int64_t z = 0; z < extent[0]; z += 2) {
      for (std::int64_t y = 0; y < extent[1]; y += 2) {
        std::array<const Pixel*, 4> rows{};
        for (std::int64_t i = 0; i < 4; ++i) {
          const std::int64_t at_z = z + i / 2, at_y = y + i % 2;
          if (at_z < extent[0] && at_y < extent[1]) rows[i] = plane + At(extent, at_z, at_y, 0);
        }
        HalveRow(rows, static_cast<std::size_t>(width), out);
        out += (width + 1) / 2;
      }
    }
  }
}

}  // namespace

Blended AddToTile(const BlendPart& part, const float* probabilities, const std::uint32_t* weights,
                  std::uint32_t* sums) {
  Extent3 first, end;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    first[axis] = std::max({std::int64_t{0}, part.first[axis], -part.origin[axis]});
    end[axis] = std::min({part.patch[axis], part.end[axis], part.tile[axis] - part.origin[axis]});
  }
  Blended found;
  if (first[2] >= end[2]) return found;
  const auto count = static_cast<std::size_t>(end[2] - first[2]);
  for (std::int64_t z = first[0]; z < end[0]; ++z) {
    for (std::int64_t y = first[1]; y < end[1]; ++y) {
      const std::int64_t from = At(part.patch, z, y, first[2]);
      const std::int64_t to =
          At(part.tile, part.origin[0] + z, part.origin[1] + y, part.origin[2] + first[2]);
      for (std::int64_t c = 0; c < part.channels; ++c) {
        found.probabilities &= AddRow(probabilities + c * Pixels(part.patch) + from, weights + from,
                                      count, sums + c * Pixels(part.tile) + to);
      }
      found.fit &= AddWeights(weights + from, count,
                              sums + part.channels * Pixels(part.tile) + to) <= kMostWeight;
    }
  }
  return found;
}

void FinishTile(std::uint32_t* sums, std::size_t channels, std::size_t pixels, std::uint8_t* out) {
  std::array<double, kBlock> factors;
  Finish(sums, channels, pixels,
         [&](std::size_t at, const std::uint32_t* weights, std::size_t count) {
           Factors(weights, count, factors.data());
           for (std::size_t c = 0; c < channels; ++c) {
             Divide(sums + c * pixels + at, weights, factors.data(), count, out + c * pixels + at);
           }
         });
}

void FinishTile(std::uint32_t* sums, std::size_t channels, std::size_t pixels, std::uint16_t* out) {
  Finish(sums, channels, pixels,
         [&](std::size_t at, const std::uint32_t* weights, std::size_t count) {
           for (std::size_t c = 0; c < channels; ++c) {
             DivideToHalf(sums + c * pixels + at, weights, count, out + c * pixels + at);
           }
         });
}

void Halve(const std::uint8_t* in, std::size_t channels, const Extent3& extent, std::uint8_t* out) {
  HalveAll(in, channels, extent, out);
}

void Halve(const std::uint16_t* in, std::size_t channels, const Extent3& extent,
           std::uint16_t* out) {
  HalveAll(in, channels, extent, out);
}

}  // namespace patchbay::python

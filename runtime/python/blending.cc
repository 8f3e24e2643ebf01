#include "runtime/python/blending.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

// One function for every processor, chosen when the module is loaded: the arithmetic is of
// integers, or of single operations that IEEE 754 defines.
#define PATCHBAY_FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))

namespace patchbay::python {
namespace {

std::int64_t At(const Extent3& extent, std::int64_t z, std::int64_t y, std::int64_t x) {
  return (z * extent[1] + y) * extent[2] + x;
}

std::int64_t Pixels(const Extent3& extent) { return extent[0] * extent[1] * extent[2]; }

constexpr std::size_t kLine = 64 / sizeof(float);  // numbers that are fetched together

/// Rows of a patch and of a tile, which are `in` and `out` numbers apart.
struct Rows {
  std::size_t count, width;
  std::ptrdiff_t in, out;
};

/// Whether all are probabilities. Compared as integers, in which every compiler finds the vectors.
PATCHBAY_FOR_EACH_PROCESSOR bool AddRows(const Rows& rows, const float* probabilities,
                                         const std::uint32_t* weights, std::uint32_t* sums) {
  constexpr auto kOne = std::bit_cast<std::uint32_t>(1.0F);
  std::uint32_t bad = 0;
  for (std::size_t row = 0; row < rows.count; ++row) {
    // The next row: the processor itself does not look ahead beyond a short one's end.
    for (std::size_t i = 0; i < rows.width; i += kLine) {
      __builtin_prefetch(probabilities + rows.in + i);
    }
    for (std::size_t i = 0; i < rows.width; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(probabilities[i] + 0.0F);  // -0 becomes 0
      const std::uint32_t good = bits < kOne ? bits : kOne;
      bad |= good ^ bits;
      const float whole = std::bit_cast<float>(good) * static_cast<float>(kWhole) + 0.5F;
      sums[i] += static_cast<std::uint32_t>(static_cast<std::int32_t>(whole)) * weights[i];
    }
    probabilities += rows.in;
    weights += rows.in;
    sums += rows.out;
  }
  return bad == 0;
}

/// The largest sum of weights in the rows.
PATCHBAY_FOR_EACH_PROCESSOR std::uint32_t AddWeightRows(const Rows& rows,
                                                        const std::uint32_t* weights,
                                                        std::uint32_t* sums) {
  std::uint32_t most = 0;
  for (std::size_t row = 0; row < rows.count; ++row) {
    for (std::size_t i = 0; i < rows.width; ++i) {
      sums[i] += weights[i];
      most = sums[i] > most ? sums[i] : most;
    }
    weights += rows.in;
    sums += rows.out;
  }
  return most;
}

/// Rows of a tile that are added to together: their sums stay in the cache from patch to patch.
constexpr std::int64_t kRowsAtOnce = 8;

/// `add(place, rows, from, to)` for all rows of all patches: `from` is their first pixel in the
/// patch, `to` in the tile.
template <typename Add>
void ForEachRows(const BlendBatch& batch, std::span<const PatchPlace> places, Add add) {
  for (std::int64_t z = 0; z < batch.tile[0]; ++z) {
    for (std::int64_t y = 0; y < batch.tile[1]; y += kRowsAtOnce) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        const PatchPlace& place = places[i];
        Extent3 first, end;  // in the tile
        const Extent3 low = {z, y, 0}, high = {z + 1, y + kRowsAtOnce, batch.tile[2]};
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::int64_t at = place.origin[axis];
          first[axis] = std::max(low[axis], at + std::max(std::int64_t{0}, place.first[axis]));
          end[axis] = std::min(
              {high[axis], batch.tile[axis], at + std::min(batch.patch[axis], place.end[axis])});
        }
        if (first[0] >= end[0] || first[1] >= end[1] || first[2] >= end[2]) continue;
        const Rows rows = {.count = static_cast<std::size_t>(end[1] - first[1]),
                           .width = static_cast<std::size_t>(end[2] - first[2]),
                           .in = batch.patch[2],
                           .out = batch.tile[2]};
        add(i, rows,
            At(batch.patch, first[0] - place.origin[0], first[1] - place.origin[1],
               first[2] - place.origin[2]),
            At(batch.tile, first[0], first[1], first[2]));
      }
    }
  }
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

/// `divide(at, count)` for all pixels, whose sums become 0.
template <typename Divide>
void Finish(std::uint32_t* sums, std::size_t channels, std::size_t pixels, Divide divide) {
  for (std::size_t at = 0; at < pixels; at += kBlock) {
    const std::size_t count = std::min(kBlock, pixels - at);
    divide(at, count);
    for (std::size_t c = 0; c < channels; ++c) std::fill_n(sums + c * pixels + at, count, 0U);
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

/// The same of rows of an even width of which every pixel is covered; false of others. Rows of one
/// plane count twice, which leaves means and halves as they are.
PATCHBAY_FOR_EACH_PROCESSOR bool HalveCovered(const std::array<const std::uint8_t*, 4>& rows,
                                              std::size_t width, std::uint8_t* out) {
  const bool is_flat = rows[2] == nullptr && rows[3] == nullptr;
  const std::array<const std::uint8_t*, 4> all = {rows[0], rows[1], is_flat ? rows[0] : rows[2],
                                                  is_flat ? rows[1] : rows[3]};
  if (width % 2 != 0 || std::ranges::find(all, nullptr) != all.end()) return false;
  std::uint8_t uncovered = 0;
  for (const std::uint8_t* row : all) {
    for (std::size_t i = 0; i < width; ++i) uncovered |= row[i] == kUncovered;
  }
  if (uncovered != 0) return false;
  for (std::size_t i = 0; i < width / 2; ++i) {
    std::uint16_t total = 4;
    for (const std::uint8_t* row : all) {
      std::uint16_t pair;  // read as one number, in which compilers find the vectors
      std::memcpy(&pair, row + 2 * i, 2);
      total = static_cast<std::uint16_t>(total + (pair & 255) + (pair >> 8));
    }
    out[i] = static_cast<std::uint8_t>(total / 8);
  }
  return true;
}

PATCHBAY_FOR_EACH_PROCESSOR void HalveAnyRow(const std::array<const std::uint8_t*, 4>& rows,
                                             std::size_t width, std::uint8_t* out) {
  HalveRows(rows, width, out);
}

void HalveRow(const std::array<const std::uint8_t*, 4>& rows, std::size_t width,
              std::uint8_t* out) {
  if (!HalveCovered(rows, width, out)) HalveAnyRow(rows, width, out);
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

bool AddToTile(const BlendBatch& batch, std::span<const std::size_t> numbers,
               std::span<const PatchPlace> places, std::uint32_t* sums) {
  bool probable = true;
  const std::int64_t pixels = Pixels(batch.patch), tile = Pixels(batch.tile);
  ForEachRows(
      batch, places, [&](std::size_t i, const Rows& rows, std::int64_t from, std::int64_t to) {
        const float* patch = batch.probabilities + numbers[i] * batch.channels * pixels;
        for (std::size_t c = 0; c < batch.channels; ++c) {
          probable &=
              AddRows(rows, patch + c * pixels + from, batch.weights + from, sums + c * tile + to);
        }
      });
  return probable;
}

bool AddWeights(const BlendBatch& batch, std::span<const PatchPlace> places, std::uint32_t* sums) {
  std::uint32_t most = 0;
  ForEachRows(batch, places,
              [&](std::size_t, const Rows& rows, std::int64_t from, std::int64_t to) {
                most = std::max(most, AddWeightRows(rows, batch.weights + from, sums + to));
              });
  return most <= kMostWeight;
}

void FinishTile(std::uint32_t* sums, const std::uint32_t* weights, std::size_t channels,
                std::size_t pixels, std::uint8_t* out) {
  std::array<double, kBlock> factors;
  Finish(sums, channels, pixels, [&](std::size_t at, std::size_t count) {
    Factors(weights + at, count, factors.data());
    for (std::size_t c = 0; c < channels; ++c) {
      Divide(sums + c * pixels + at, weights + at, factors.data(), count, out + c * pixels + at);
    }
  });
}

void FinishTile(std::uint32_t* sums, const std::uint32_t* weights, std::size_t channels,
                std::size_t pixels, std::uint16_t* out) {
  Finish(sums, channels, pixels, [&](std::size_t at, std::size_t count) {
    for (std::size_t c = 0; c < channels; ++c) {
      DivideToHalf(sums + c * pixels + at, weights + at, count, out + c * pixels + at);
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

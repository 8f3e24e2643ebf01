#include "runtime/python/blending.h"

// One function for every processor, chosen when the module is loaded: the arithmetic is of
// integers, or of single operations that IEEE 754 defines.
#define PATCHBAY_FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))

namespace patchbay::python {
namespace {

PATCHBAY_FOR_EACH_PROCESSOR bool AllProbabilities(const float* values, std::size_t count) {
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) all &= values[i] >= 0.0F && values[i] <= 1.0F;
  return all;
}

PATCHBAY_FOR_EACH_PROCESSOR void Round(const float* values, std::size_t count, std::uint16_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<std::uint16_t>(
        static_cast<std::int32_t>(values[i] * static_cast<float>(kWhole) + 0.5F));
  }
}

PATCHBAY_FOR_EACH_PROCESSOR void AddRow(const std::uint16_t* probabilities,
                                        const std::uint32_t* weights, std::size_t count,
                                        std::uint32_t* sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += probabilities[i] * weights[i];
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

PATCHBAY_FOR_EACH_PROCESSOR void Divide(const std::uint32_t* sums, const std::uint32_t* weights,
                                        std::size_t pixels, std::uint8_t* out) {
  for (std::size_t i = 0; i < pixels; ++i) {
    const double weight = weights[i] == 0 ? 1.0 : static_cast<double>(weights[i]);
    const double value = static_cast<double>(sums[i]) * kUint8Whole / (weight * kWhole);
    const auto rounded = static_cast<std::uint8_t>(static_cast<std::int32_t>(value + 0.5));
    out[i] = weights[i] == 0 ? kUncovered : rounded;
  }
}

std::size_t At(const Extent3& extent, std::size_t z, std::size_t y, std::size_t x) {
  return (z * extent[1] + y) * extent[2] + x;
}

std::size_t Pixels(const Extent3& extent) { return extent[0] * extent[1] * extent[2]; }

}  // namespace

std::size_t RoundProbabilities(const float* values, std::size_t count, std::uint16_t* out) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t block = count - first < kBlock ? count - first : kBlock;
    if (!AllProbabilities(values + first, block)) {
      while (values[first] >= 0.0F && values[first] <= 1.0F) ++first;
      return first;
    }
    Round(values + first, block, out + first);
  }
  return count;
}

bool AddToTile(const BlendPart& part, const std::uint16_t* probabilities,
               const std::uint32_t* weights, std::uint32_t* sums) {
  const std::size_t patch_pixels = Pixels(part.patch), tile_pixels = Pixels(part.tile);
  bool fits = true;
  for (std::size_t z = 0; z < part.size[0]; ++z) {
    for (std::size_t y = 0; y < part.size[1]; ++y) {
      const std::size_t from =
          At(part.patch, part.in_patch[0] + z, part.in_patch[1] + y, part.in_patch[2]);
      const std::size_t to =
          At(part.tile, part.in_tile[0] + z, part.in_tile[1] + y, part.in_tile[2]);
      for (std::size_t c = 0; c < part.channels; ++c) {
        AddRow(probabilities + c * patch_pixels + from, weights + from, part.size[2],
               sums + c * tile_pixels + to);
      }
      fits &= AddWeights(weights + from, part.size[2], sums + part.channels * tile_pixels + to) <=
              kMostWeight;
    }
  }
  return fits;
}

void FinishTile(const std::uint32_t* sums, std::size_t channels, std::size_t pixels,
                std::uint8_t* out) {
  for (std::size_t c = 0; c < channels; ++c) {
    Divide(sums + c * pixels, sums + channels * pixels, pixels, out + c * pixels);
  }
}

}  // namespace patchbay::python

#include "runtime/python/blending.h"

#include <algorithm>

// One function for every processor, chosen when the module is loaded: the arithmetic is of
// integers, or of single operations that IEEE 754 defines.
#define PATCHBAY_FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))

namespace patchbay::python {
namespace {

/// Whether all are probabilities.
PATCHBAY_FOR_EACH_PROCESSOR bool AddRow(const float* probabilities, const std::uint32_t* weights,
                                        std::size_t count, std::uint32_t* sums) {
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    const bool good = probabilities[i] >= 0.0F && probabilities[i] <= 1.0F;
    all &= good;
    const float whole = (good ? probabilities[i] : 0.0F) * static_cast<float>(kWhole) + 0.5F;
    sums[i] += static_cast<std::uint32_t>(static_cast<std::int32_t>(whole)) * weights[i];
  }
  return all;
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

std::int64_t At(const Extent3& extent, std::int64_t z, std::int64_t y, std::int64_t x) {
  return (z * extent[1] + y) * extent[2] + x;
}

std::int64_t Pixels(const Extent3& extent) { return extent[0] * extent[1] * extent[2]; }

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

void FinishTile(const std::uint32_t* sums, std::size_t channels, std::size_t pixels,
                std::uint8_t* out) {
  for (std::size_t c = 0; c < channels; ++c) {
    Divide(sums + c * pixels, sums + channels * pixels, pixels, out + c * pixels);
  }
}

}  // namespace patchbay::python

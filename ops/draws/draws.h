// Draws from ranges, and an op that draws for every patch with its part of the draw key.
#pragma once

#include <cstdint>

#include "runtime/core/random.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::ops {

template <typename Options>
struct DrawnOp {
  std::uint32_t occurrence = 0;  ///< plan::Occurrence: part of its draw key
  Options options;
};

/// Uniform in the range, from 32 bits.
double Drawn(const plan::DrawRange& range, std::uint32_t word);

/// Uniform in the range, from 32 bits; with 1 inside, half of the draws are below 1, as nnU-Net
/// draws.
double DrawnAroundOne(const plan::DrawRange& range, std::uint32_t word);

}  // namespace patchbay::ops

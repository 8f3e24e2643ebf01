// Runs the program of a patch on the CPU: one pass from the source to the slot, and a pass over
// patch-sized scratch for each step that needs neighbours or the whole patch. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/chain/patch_steps.h"
#include "ops/chain/row_gather.h"
#include "ops/chain/row_loops.h"
#include "runtime/core/extent.h"

namespace patchbay::ops {

/// The destination of a finished patch.
struct PatchTarget {
  Extent patch;
  int channels = 1;
  bool planar = true;  ///< a channel's elements lie one after another
  CastTo to = CastTo::kFloat32;
  std::byte* out = nullptr;
};

/// `scratch` belongs to the calling thread and is resized as needed.
void RunPatch(const RowLoops& loops, RowGather& gather, std::span<const PatchStep> steps,
              const PatchTarget& target, std::vector<std::byte>& scratch);

/// The gather alone, on labels of uint8: the nearest pixels. `out` receives the patch's pixels.
void RunNearest(RowGather& gather, const Extent& patch, std::uint8_t* out,
                std::vector<std::byte>& scratch);

/// Blurs a row in place. `padded` has room for the row, the radius on both sides and a whole
/// vector.
void BlurRow(const RowLoops& loops, const PatchBlur& blur, std::int64_t width, float* row,
             float* padded);

}  // namespace patchbay::ops

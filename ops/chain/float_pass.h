// Runs the float loops over one slice of a patch: one pass from the source to the slot, and a pass
// over patch-sized scratch for each op that needs neighbours or the whole patch. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/chain/colour_program.h"
#include "ops/chain/row_loops.h"

namespace patchbay::ops {

/// One slice. Everything outlives the call.
struct FloatPassJob {
  const Strided* source = nullptr;
  DType dtype = DType::kUint8;
  const PatchGeometry* geometry = nullptr;
  const PatchColour* colour = nullptr;
  const ColourProgram* program = nullptr;
  std::int64_t height = 0, width = 0;  ///< of the finished patch
  std::int64_t rows_before = 0;        ///< finished rows of the slices before this one
  RowTarget target;                    ///< `out` is the slice's first element; `room` is not used
  std::int64_t target_row_bytes = 0;
};

/// `scratch` belongs to the calling thread and is resized as needed.
void RunFloatPass(const RowLoops& loops, const FloatPassJob& job, std::vector<std::byte>& scratch);

/// Blurs a row in place. `padded` has room for the row, the radius on both sides and a whole
/// vector.
void BlurRow(const RowLoops& loops, const PatchBlur& blur, std::int64_t width, float* row,
             float* padded);

/// The geometry alone, on a one-channel image of bytes: the nearest pixel, halves upwards. `out`
/// receives height x width bytes.
void RunNearestPass(const RowLoops& loops, const Strided& source, const PatchGeometry& geometry,
                    std::uint8_t* out, std::vector<std::byte>& scratch);

}  // namespace patchbay::ops

// Runs the chain of a volume over one patch: one pass from the source to the slot, and passes over
// patch-sized scratch for the ops that need neighbours or the whole patch. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/chain/row_loops.h"
#include "ops/volume/volume_program.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::ops {

/// One patch. Everything outlives the call.
struct VolumePassJob {
  ConstTensorView source;  ///< (z, y, x) of geometry->source, any strides
  const VolumeGeometry* geometry = nullptr;
  const VolumeIntensity* intensity = nullptr;
  const VolumeProgram* program = nullptr;
  Extent patch;
  CastTo to = CastTo::kFloat32;
  std::byte* out = nullptr;
};

/// `scratch` belongs to the calling thread and is resized as needed.
void RunVolumePass(const RowLoops& loops, const VolumePassJob& job,
                   std::vector<std::byte>& scratch);

/// The geometry alone, on labels of uint8: the nearest voxel, halves upwards. `out` receives the
/// patch's voxels.
void RunVolumeLabels(const RowLoops& loops, const ConstTensorView& labels,
                     const VolumeGeometry& geometry, const Extent& patch, std::uint8_t* out,
                     std::vector<std::byte>& scratch);

}  // namespace patchbay::ops

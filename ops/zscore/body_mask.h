// body_mask: the voxels of a CT that belong to the patient. Voxels above -500 HU, opened by a ball
// three voxels across (which removes the table); of these the largest 6-connected piece (of equal
// ones the first), with its holes filled in every axial slice. Lungs and bowel gas are inside; the
// table and the air around the patient are outside.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"

namespace patchbay::ops {

inline constexpr int kBodyAboveHu = -500;

/// Called before an allocation with its bytes (earlier allocations are freed before); an error ends
/// the work.
using MayTakeMemory = std::function<Status(std::uint64_t bytes)>;

/// Called a few times for every slice; an error ends the work.
using SliceDone = std::function<Status()>;

/// One byte per voxel, 1: body. `hu` is (z, y, x) of `size`, slices axial. Without a body all 0.
/// Needs three bytes per voxel while the mask is opened; then one byte per voxel, 16 bytes per run
/// of body in a row (for a patient one run per some hundred voxels, at most one per two), and nine
/// bytes per pixel of one slice. `may_take` is called before each of these steps; its errors are
/// returned.
StatusOr<std::vector<std::uint8_t>> BodyMask(std::span<const std::int16_t> hu, const Extent& size,
                                             const MayTakeMemory& may_take = {},
                                             const SliceDone& slice_done = {});

}  // namespace patchbay::ops

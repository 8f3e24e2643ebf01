// body_mask: which voxels of a CT are the patient's: above -500 HU, opened by a ball three voxels
// across (the table goes), the largest piece (6-connected; of equal ones the first), its holes
// filled in every axial slice. Lungs and bowel gas are inside, the air around and the table are
// not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/extent.h"

namespace patchbay::ops {

inline constexpr int kBodyAboveHu = -500;

/// One byte a voxel, 1: body. `hu` is (z, y, x) of `size`, slices axial. Without a body all 0.
/// Takes three bytes a voxel, and the runs of its rows.
std::vector<std::uint8_t> BodyMask(std::span<const std::int16_t> hu, const Extent& size);

}  // namespace patchbay::ops

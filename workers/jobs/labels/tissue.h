// Where a slide holds tissue, as a label set of its store.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/model/plan/class_table.h"
#include "workers/jobs/labels/image.h"
#include "workers/jobs/task/task.h"
#include "workers/jobs/task/tissue_profile.h"

namespace patchbay::workers {

class LabelRaster;

/// Pixels of level 0 between the places that sampling draws from: the mask itself is coarser.
inline constexpr std::uint32_t kTissueStep = 16;

/// background (0) and tissue (1); every pixel is one of them.
plan::ClassTable TissueClasses();

/// The tissue of the store. Reads its pixels at once; `report().tissue` describes the method.
/// InvalidArgument for a store that is not RGB of 8 bits.
StatusOr<std::unique_ptr<LabelRaster>> DrawTissue(TaskContext& context, const LabelledImage& image,
                                                  const TissueProfile& profile);

}  // namespace patchbay::workers

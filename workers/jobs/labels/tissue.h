// Where a slide holds tissue, as a label set of its store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ops/tissue/tissue_mask.h"
#include "runtime/model/plan/class_table.h"
#include "workers/jobs/labels/image.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

class LabelRaster;

/// Pixels of level 0 between the places that sampling draws from: the mask itself is coarser.
inline constexpr std::uint32_t kTissueStep = 16;

/// How tissue is told from background, named after the program whose published settings it has, in
/// microns.
struct TissueProfile {
  std::string name;
  ops::TissueMaskOptions options;
};

/// "clam", "tiatoolbox" or "histolab".
StatusOr<TissueProfile> TissueProfileOf(std::string_view name);

/// background (0) and tissue (1); every pixel is one of them.
plan::ClassTable TissueClasses();

/// The tissue of the store. Reads its pixels at once; `report().tissue` describes the method.
/// InvalidArgument for a store that is not RGB of 8 bits.
StatusOr<std::unique_ptr<LabelRaster>> DrawTissue(TaskContext& context, const LabelledImage& image,
                                                  const TissueProfile& profile);

}  // namespace patchbay::workers

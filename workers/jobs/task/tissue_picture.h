// The small picture of a whole image that its tissue is looked for in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/tensor_view.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Pixels of level 0 along the side of one of the picture, or a little more for the largest images.
inline constexpr std::int64_t kTissueDownsample = 32;
/// Pixels of the picture; larger images are averaged further.
inline constexpr std::int64_t kMaxTissuePicture = std::int64_t{1} << 22;

struct TissuePicture {
  int level = 0;            ///< the level that was averaged
  std::int64_t factor = 1;  ///< over squares of so many of its pixels, smaller at the far edges
  std::int64_t height = 0, width = 0;
  std::vector<std::byte> pixels;  ///< height x width x RGB

  ConstTensorView View() const;
};

/// The picture of an RGB image of 8 bits. Reads its coarsest level that is fine enough, and
/// averages that; an image without a pyramid is decoded once for it. Moves the task's progress.
/// DataLoss names a tile of that level.
StatusOr<TissuePicture> TissuePictureOf(TaskContext& context, const ImageSource& image);

}  // namespace patchbay::workers

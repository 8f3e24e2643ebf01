// The grid of an image: how many patches it has and where each begins.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/core/extent.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

inline Extent StrideOf(const RunConfig& config) {
  return config.stride.Empty() ? config.patch : config.stride;
}

/// Cells of a grid of boxes `patch`: from the origin on, so many that every pixel is covered,
/// unless the stride is longer than the patch.
inline Extent GridOf(const Extent& size, const Extent& patch, const Extent& stride) {
  const auto cells = [](std::int64_t whole, std::int64_t patch, std::int64_t step) {
    return (std::max<std::int64_t>(0, whole - patch) + step - 1) / step + 1;
  };
  return {cells(size.z, patch.z, stride.z), cells(size.y, patch.y, stride.y),
          cells(size.x, patch.x, stride.x)};
}

}  // namespace patchbay::plan

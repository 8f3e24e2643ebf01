// The label sets of a store on its card: outlines of tissue and classes, and their legend.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/extent.h"
#include "runtime/base/status.h"
#include "workers/plots/preview_sheet.h"

namespace patchbay::workers {

/// Sets whose classes are outlined; the others are named alone.
inline constexpr std::size_t kMaxSetsDrawn = 4;

/// Adds what the current label sets of the store at `path` have at its level `level` of `size`
/// pixels: an area a class, its colour and share of the picture. Nothing for what has no label
/// sets. DataLoss and InvalidArgument name the set. @return whether one of them is the set `tissue`
StatusOr<bool> AddLabelOutlines(const std::string& path, int level, const Extent& size,
                                ImageCard& card);

}  // namespace patchbay::workers

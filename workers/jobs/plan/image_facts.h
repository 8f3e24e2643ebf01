// The facts of an opened image, with the corrections of the user's table.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/results/image_facts.h"
#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// um/px that a table may give an image: a correction outside of it is one in another unit.
inline constexpr double kMinTableMpp = 0.001, kMaxTableMpp = 50;
/// Relative difference up to which two um/px are the same.
inline constexpr double kSameMpp = 1e-4;

/// The facts of the image at `path`. A `table_mpp` that is not what the file says takes its place
/// in `layout` too, along both axes in proportion. InvalidArgument, naming the column, where it
/// cannot be meant: for a volume, or out of bounds.
StatusOr<results::ImageFacts> SettleFacts(const Folders& allowed, const std::string& path,
                                          std::optional<double> table_mpp, ImageLayout& layout);

}  // namespace patchbay::workers

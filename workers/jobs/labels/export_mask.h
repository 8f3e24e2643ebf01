// A label set as a TIFF mask, in pixels of the slide's finest level.
#pragma once

#include <cstdint>
#include <string>

#include "workers/jobs/labels/opened_labels.h"

namespace patchbay::workers {

/// Writes the values of the set (255 = ignored), some rows at a time; returns the file's bytes. The
/// file appears whole or not at all.
StatusOr<std::uint64_t> ExportMask(TaskContext& context, const OpenedLabels& labels,
                                   const std::string& path);

}  // namespace patchbay::workers

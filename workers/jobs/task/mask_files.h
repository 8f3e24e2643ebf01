// Detects masks in a folder next to their images: such files are no images.
#pragma once

#include <string>

#include "workers/jobs/task/task.h"
#include "workers/sources/volumes/find_volumes.h"

namespace patchbay::workers {

/// The verdict that tables have for such a file.
inline constexpr std::string_view kMaskVerdict = "mask";

/// Why a volume of a folder is a mask: "only 3 distinct values, all whole numbers up to 5", or that
/// it lies among the labels of a dataset.json. "" for an image, and for DICOM.
StatusOr<std::string> MaskReason(TaskContext& context, const FoundVolume& volume);

/// Likewise of a slide's file: one channel of 8 bits, of which up to 64 tiles are looked at, or a
/// mask that `labels export` wrote.
StatusOr<std::string> MaskReason(TaskContext& context, const std::string& slide);

}  // namespace patchbay::workers

// Pixels of any type as pictures to look at.
#pragma once

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/os/folders.h"
#include "workers/plots/preview_sheet.h"

namespace patchbay::workers {

/// `pixels` is (height, width, channels). RGB of uint8 is unchanged; other types are stretched from
/// their smallest to their largest value; one channel is shown as grey, of more channels the first
/// three.
Picture PictureOf(const ConstTensorView& pixels);

/// `picture` with the class colour over every pixel of `mask`, which has its size; ignored pixels
/// are unchanged.
Picture Overlaid(const Picture& picture, const std::vector<std::uint8_t>& mask);

/// Writes a finished sheet. PermissionDenied outside the task's rights.
StatusOr<std::uint64_t> WriteSheet(const Folders& allowed, const std::string& path,
                                   const std::string& png);

}  // namespace patchbay::workers

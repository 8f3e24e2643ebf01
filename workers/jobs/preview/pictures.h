// Pixels of any type as pictures to look at.
#pragma once

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/os/folders.h"
#include "workers/plots/preview_sheet.h"

namespace patchbay::workers {

/// `pixels` is (height, width, channels). RGB of uint8 as it is; other types stretched from their
/// least to their largest value; one channel as grey, of more the first three.
Picture PictureOf(const ConstTensorView& pixels);

/// `picture` with the colour of its class over every pixel of `mask`, whose size it has; what is
/// ignored stays as it is.
Picture Overlaid(const Picture& picture, const std::vector<std::uint8_t>& mask);

/// Writes a finished sheet. PermissionDenied outside the task's rights.
StatusOr<std::uint64_t> WriteSheet(const Folders& allowed, const std::string& path,
                                   const std::string& png);

}  // namespace patchbay::workers

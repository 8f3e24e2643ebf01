// PNG and JPEG pictures: tiles cut elsewhere, and references of stain normalisation.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "runtime/os/folders.h"  // wide: part of every source's interface
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Opens a picture (kind "png" or "jpeg") of 8 bits, grey or RGB; a palette becomes RGB. It has one
/// level and no stated spacing, and is decoded as a whole. `file`: its bytes. InvalidArgument for a
/// damaged header and a picture of more than 64 million pixels; Unimplemented, with the reason, for
/// other depths, transparency, CMYK, and a JPEG that its EXIF turns.
StatusOr<std::unique_ptr<ImageSource>> OpenPicture(const std::string& path,
                                                   std::shared_ptr<const zarr::StoredBytes> file);

/// Whether a file begins as a PNG or a JPEG does.
bool IsPicture(std::string_view head);

}  // namespace patchbay::workers

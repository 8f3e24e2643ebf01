// Slides in TIFF: Aperio SVS and generic pyramids.
#pragma once

#include <memory>
#include <string>

#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"
#include "workers/sources/tiff_levels.h"

namespace patchbay::workers {

/// Opens an Aperio SVS (kind "aperio") or a generic TIFF (kind "tiff"), classic or BigTIFF, either
/// byte order. Reads only the directories it needs: label and macro images are never opened.
///
/// InvalidArgument: not a TIFF or malformed; Unimplemented: a TIFF whose layout is not read (more
/// than 16 bits, signed samples, palette, several full-size images without OME-XML, ...).
StatusOr<std::unique_ptr<ImageSource>> OpenTiffImage(
    const Folders& allowed, const std::string& path,
    const ReadCaches& caches = ReadCaches::ForOneImage());

/// An image of pieces that lie in the object under the empty key of `store`, which is now `file`.
std::unique_ptr<ImageSource> MakeTiledImage(std::shared_ptr<zarr::ByteStore> store,
                                            const zarr::StoredBytes& file, TiffPyramid pyramid);

}  // namespace patchbay::workers

// An NGFF multiscales store as an image source.
#pragma once

#include <memory>
#include <string>

#include "runtime/core/status.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Opens a folder holding OME-NGFF 0.4 or 0.5 multiscales with axes (c, y, x), (z, y, x) or (y, x);
/// further leading axes of extent 1 are tolerated. InvalidArgument: not such a store, or malformed;
/// Unimplemented: axes, types or codecs we do not read.
///
/// Absent chunks are pixels, not holes: they decode to the store's own fill value, whatever `fill`
/// the caller passes to Decode (that one is for pixels outside the image). A file that the store
/// lists and that is gone, or a level that is, is DataLoss.
StatusOr<std::unique_ptr<ImageSource>> OpenZarrImage(
    const Folders& allowed, const std::string& path,
    const ReadCaches& caches = ReadCaches::ForOneImage());
/// The same of a store whose root was read.
StatusOr<std::unique_ptr<ImageSource>> OpenZarrImage(
    const Folders& allowed, const std::string& path, const zarr::GroupMetadata& root,
    const ReadCaches& caches = ReadCaches::ForOneImage());

}  // namespace patchbay::workers

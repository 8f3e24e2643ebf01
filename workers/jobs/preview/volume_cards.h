// A card a volume: three slices through it, with its labels laid over them.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/plots/preview_sheet.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// An axial, a coronal and a sagittal slice of the store at `path`, whose image is `image`, through
/// the middle of the labelled voxels, or of the volume; Hounsfield units of -160 to 240 as grey,
/// voxels as large as their spacing. `set` is the label set to overlay; "": the first existing one,
/// if any. InvalidArgument: the store has no such set.
StatusOr<PatchCard> VolumeCardOf(const Folders& allowed, const std::string& path,
                                 const ImageSource& image, const std::string& set,
                                 const AfterPiece& after_piece);

}  // namespace patchbay::workers

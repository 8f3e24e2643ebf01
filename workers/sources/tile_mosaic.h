// The tiles of a dataset as one image: pictures of one size, one below the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// ImageLayout::kind of such an image, and what its store records as the kind of its source.
inline constexpr char kTilesKind[] = "tiles";

/// Opens the first of `files`, which lie below `folder`: size, type and channels are those of all.
/// Tile n has the rows from n times their height on. Fetch only notes the box; Decode opens, reads
/// and decodes the pictures, and calls EncodedPatch::after_piece after each. InvalidArgument, also
/// of Decode, about the path of a picture that is unlike the first.
StatusOr<std::unique_ptr<ImageSource>> OpenTileMosaic(const Folders& allowed, std::string folder,
                                                      std::vector<std::string> files);

}  // namespace patchbay::workers

// Slides of the vendors that OpenSlide knows and tiff_source.h does not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The vendor OpenSlide names for this file ("mirax", "hamamatsu", "leica", ...), or nullopt.
std::optional<std::string> OpenSlideVendor(const Folders& allowed, const std::string& path);

/// All files that OpenSlide reads for a slide, the named one first: several for MIRAX and
/// Hamamatsu's VMS, all that lie in the folder of their parts.
std::vector<std::string> SlideFiles(const Folders& allowed, const std::string& path);

/// The scanned area within level 0, if a slide of OpenOpenSlideImage states that it is only a part;
/// nullopt otherwise.
StatusOr<std::optional<Box>> ScannedAreaOf(const Folders& allowed, const std::string& path);

/// Opens through OpenSlide, kind "openslide:<vendor>". Fetch only notes the box; reading and
/// decoding both happen in Decode, which is Aborted when a file at one of the slide's names has
/// changed since the slide was opened (OpenSlide gives no access to its descriptors). OpenSlide
/// resamples levels whose downsample is not a whole number.
StatusOr<std::unique_ptr<ImageSource>> OpenOpenSlideImage(const Folders& allowed,
                                                          const std::string& path);

}  // namespace patchbay::workers

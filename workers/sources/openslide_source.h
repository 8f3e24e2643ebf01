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

/// Where the scanned area lies in level 0, where a slide of OpenOpenSlideImage says that it is only
/// a part of it; nullopt otherwise.
StatusOr<std::optional<Box>> ScannedAreaOf(const Folders& allowed, const std::string& path);

/// Opens through OpenSlide, kind "openslide:<vendor>". Fetch only notes the box; reading and
/// decoding both happen in Decode, which is Aborted when one of the slide's files is not, by its
/// name, what it was when the slide was opened: OpenSlide shows no descriptor. A level whose
/// downsample is not a whole number is resampled by OpenSlide, as everywhere that library is used.
StatusOr<std::unique_ptr<ImageSource>> OpenOpenSlideImage(const Folders& allowed,
                                                          const std::string& path);

}  // namespace patchbay::workers

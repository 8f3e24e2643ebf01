// Slides of the vendors that OpenSlide knows and tiff_source.h does not.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The vendor OpenSlide names for this file ("mirax", "hamamatsu", "leica", ...), or nullopt.
std::optional<std::string> OpenSlideVendor(const std::string& path);

/// Where the scanned area lies in level 0, where a slide of OpenOpenSlideImage says that it is only
/// a part of it; nullopt otherwise.
StatusOr<std::optional<Box>> ScannedAreaOf(const std::string& path);

/// Opens through OpenSlide, kind "openslide:<vendor>". Fetch only notes the box; reading and
/// decoding both happen in Decode. A level whose downsample is not a whole number is resampled by
/// OpenSlide, as everywhere that library is used.
StatusOr<std::unique_ptr<ImageSource>> OpenOpenSlideImage(const std::string& path);

}  // namespace patchbay::workers

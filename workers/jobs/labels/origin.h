// Where the coordinates of annotations begin, on slides whose scanned area is not the whole image.
#pragma once

#include <string_view>

#include "runtime/core/status.h"
#include "workers/jobs/labels/image.h"

namespace patchbay::workers {

enum class Origin {
  kByFormat,  ///< kBounds for GeoJSON, as QuPath draws; kSlide for other formats
  kSlide,     ///< upper left corner of the slide's finest level
  kBounds,    ///< upper left corner of the slide's scanned area
};

/// "auto", "slide" or "bounds"; InvalidArgument for anything else.
StatusOr<Origin> OriginOf(std::string_view name);

/// The offset, in pixels of the finest level, that turns coordinates of a file of that format
/// ("geojson", "asap", "imagescope") into those of the slide; (0, 0) where the whole slide was
/// scanned.
Point OffsetOf(Origin origin, const LabelledImage& image, std::string_view format);

}  // namespace patchbay::workers

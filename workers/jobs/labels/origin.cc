#include "workers/jobs/labels/origin.h"

#include "runtime/core/strings.h"

namespace patchbay::workers {

StatusOr<Origin> OriginOf(std::string_view name) {
  if (name == "auto") return Origin::kByFormat;
  if (name == "slide") return Origin::kSlide;
  if (name == "bounds") return Origin::kBounds;
  return InvalidArgument("labels payload: origin '", name, "' is not auto, slide or bounds");
}

Point OffsetOf(Origin origin, const LabelledImage& image, std::string_view format) {
  const bool by_format = origin == Origin::kByFormat && format == "geojson";
  const bool is_of_bounds = origin == Origin::kBounds || by_format;
  return is_of_bounds ? image.bounds.Origin() : Point();
}

}  // namespace patchbay::workers

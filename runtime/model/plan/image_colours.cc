#include "runtime/model/plan/image_colours.h"

#include "runtime/core/strings.h"

namespace patchbay::plan {

std::string WrongColours(const PlannedImage& image) {
  constexpr int kColours = 3;
  if (image.channels == kColours && image.dtype == DType::kUint8) return "";
  return StrCat("it needs three channels of uint8, the image has ", image.channels, " of ",
                NameOf(image.dtype));
}

Status CheckRowsOf(std::string_view name, const Json& rows,
                   const std::vector<PlannedImage>& images) {
  if (rows.is_array() && rows.size() == images.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("plan: ", name, ": not one row an image"));
}

}  // namespace patchbay::plan

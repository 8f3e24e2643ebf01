#include "runtime/model/plan/image_icc.h"

#include <optional>

#include "runtime/core/strings.h"
#include "runtime/model/ops/icc_to_srgb.h"
#include "runtime/model/plan/image_colours.h"
#include "runtime/model/plan/image_error.h"

namespace patchbay::plan {
namespace {

std::optional<IccToSrgbOptions> IccOf(const RunConfig& config) {
  return FindIccToSrgb(config.preprocess, config.augment);
}

Status Bad(std::size_t image, std::string_view cause) {
  return ImageError(image, StrCat("icc_to_srgb: ", cause));
}

}  // namespace

Status SettleIcc(const RunConfig& config, std::vector<PlannedImage>& images) {
  const auto icc = IccOf(config);
  for (std::size_t i = 0; i < images.size(); ++i) {
    PlannedImage& image = images[i];
    if (!icc) {
      image.icc.reset();
      continue;
    }
    if (const std::string wrong = WrongColours(image); !wrong.empty()) return Bad(i, wrong);
    if (!image.icc) return Bad(i, "the image was not looked at for a profile");
    if (icc->refuses_missing && image.icc->fallback != IccFallback::kNone) {
      return Bad(i, StrCat(NameOf(image.icc->fallback),
                           "; `missing: keep` takes its colours as they are"));
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan

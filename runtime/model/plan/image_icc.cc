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

Json IccToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  if (!IccOf(config)) return nullptr;
  Json rows = Json::array();
  for (const PlannedImage& image : images) rows.push_back(ToJson(*image.icc));
  return rows;
}

Status IccFromJson(const RunConfig& config, const Json& rows, std::vector<PlannedImage>& images) {
  if (!IccOf(config)) return absl::OkStatus();
  PB_RETURN_IF_ERROR(CheckRowsOf("icc", rows, images));
  for (std::size_t i = 0; i < images.size(); ++i) {
    PB_ASSIGN_OR_RETURN(images[i].icc, ImageIccFromJson(rows[i]));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan

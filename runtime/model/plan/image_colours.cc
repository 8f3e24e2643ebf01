#include "runtime/model/plan/image_colours.h"

#include <optional>

#include "runtime/core/strings.h"
#include "runtime/model/ops/image_icc_lookup.h"
#include "runtime/model/plan/image_error.h"

namespace patchbay::plan {
namespace {

Status Bad(std::size_t image, std::string_view cause) {
  return ImageError(image, StrCat("icc_to_srgb: ", cause));
}

}  // namespace

std::string WrongColours(const PlannedImage& image) {
  constexpr int kColours = 3;
  if (image.channels == kColours && image.dtype == DType::kUint8) return "";
  return StrCat("it needs three channels of uint8, the image has ", image.channels, " of ",
                NameOf(image.dtype));
}

Status CheckRowsOf(std::string_view name, const Json& rows,
                   const std::vector<PlannedImage>& images) {
  if (rows.is_array() && rows.size() == images.size()) return absl::OkStatus();
  return InvalidArgument("plan: ", name, ": expected one row per image");
}

FoundOp FindIccOp(const OpLists& lists) {
  return lists.Find([](const OpRow& op, const Json&) { return op.needs.icc; });
}

Status SettleIcc(const RunConfig& config, std::vector<PlannedImage>& images) {
  const FoundOp icc = FindIccOp(config);
  for (std::size_t i = 0; i < images.size(); ++i) {
    PlannedImage& image = images[i];
    if (!icc) {
      image.icc.reset();
      continue;
    }
    if (const std::string wrong = WrongColours(image); !wrong.empty()) return Bad(i, wrong);
    if (!image.icc) return Bad(i, "the image was not looked at for a profile");
    if (icc.op->refuses_missing(*icc.options) && image.icc->fallback != IccFallback::kNone) {
      return Bad(i, StrCat(NameOf(image.icc->fallback),
                           "; `missing: keep` takes its colours as they are"));
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan

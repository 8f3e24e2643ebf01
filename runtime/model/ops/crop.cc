#include "runtime/model/ops/crop.h"

namespace patchbay::plan {

config::Key CropOptions::Keys() {
  return {.name = "crop",
          .type = config::KeyType::kMap,
          .help = "cuts the patch out of a larger box",
          .members = {{.name = "margin",
                       .type = config::KeyType::kIntList,
                       .required = true,
                       .unit = "px",
                       .min = 0,
                       .max = static_cast<double>(kMaxCropMargin),
                       .min_items = 2,
                       .max_items = 2,
                       .help = "pixels read beyond the patch on each side, y and x"},
                      {.name = "position",
                       .type = config::KeyType::kChoice,
                       .fallback = "random",
                       .choices = {"random", "center"},
                       .help = "anywhere within the margins, or the centre"}}};
}

CropOptions CropOptions::FromJson(const Json& options) {
  return {options["margin"][0].get<std::int64_t>(), options["margin"][1].get<std::int64_t>(),
          options["position"] == "random"};
}

}  // namespace patchbay::plan

#include "runtime/model/ops/flip.h"

#include <string>

#include "runtime/core/strings.h"

namespace patchbay::plan {

namespace {

Status CheckAxes(const Json& axes) {
  std::string seen;
  for (const Json& axis : axes) {
    const auto& name = axis.get_ref<const std::string&>();
    if (name != "z" && name != "y" && name != "x") {
      return absl::InvalidArgumentError(StrCat("'", name, "' is not an axis: expected z, y and x"));
    }
    if (seen.find(name) != std::string::npos) {
      return absl::InvalidArgumentError(StrCat("'", name, "' twice"));
    }
    seen += name;
  }
  return absl::OkStatus();
}

Status CheckTable(const Json& options) {
  const FlipOptions defaults, flip = FlipOptions::FromJson(options);
  const bool given = flip.horizontal != defaults.horizontal || flip.vertical != defaults.vertical;
  if (!flip.by_axes || !given) return absl::OkStatus();
  return absl::InvalidArgumentError("axes excludes horizontal and vertical");
}

}  // namespace

config::Key FlipOptions::Keys() {
  const FlipOptions defaults;
  return {
      .name = "flip",
      .type = config::KeyType::kMap,
      .help = "mirrors the patch",
      .members = {{.name = "horizontal",
                   .type = config::KeyType::kFloat,
                   .fallback = defaults.horizontal,
                   .min = 0,
                   .max = 1,
                   .help = "probability of mirroring left-right"},
                  {.name = "vertical",
                   .type = config::KeyType::kFloat,
                   .fallback = defaults.vertical,
                   .min = 0,
                   .max = 1,
                   .help = "probability of mirroring top-bottom"},
                  {.name = "axes",
                   .type = config::KeyType::kStringList,
                   .fallback = Json::array(),
                   .max_items = 3,
                   .help =
                       "for volumes, instead of the two above: z, y, x, each with probability 0.5",
                   .check = CheckAxes}},
      .check = CheckTable};
}

FlipOptions FlipOptions::FromJson(const Json& options) {
  FlipOptions flip;
  flip.horizontal = options["horizontal"].get<double>();
  flip.vertical = options["vertical"].get<double>();
  for (const Json& axis : options["axes"]) {
    flip.by_axes = true;
    flip.z = flip.z || axis == "z";
    flip.y = flip.y || axis == "y";
    flip.x = flip.x || axis == "x";
  }
  return flip;
}

}  // namespace patchbay::plan

#include "runtime/model/ops/affine.h"

#include <string>

namespace patchbay::plan {

config::Key BorderKey() {
  return {.name = "border",
          .type = config::KeyType::kChoice,
          .fallback = "reflect101",
          .choices = {"reflect101", "reflect", "edge"},
          .help =
              "beyond the box that is read (the patch and crop.margin): mirrored about its "
              "outer pixels, about its edges, or its outer pixels repeated; not of volumes"};
}

Border BorderOf(const Json& options) {
  const auto& name = options["border"].get_ref<const std::string&>();
  if (name == "reflect101") return Border::kReflect101;
  return name == "reflect" ? Border::kReflect : Border::kEdge;
}

config::Key AffineOptions::Keys() {
  const AffineOptions defaults;
  using config::KeyType;
  return {
      .name = "affine",
      .type = KeyType::kMap,
      .help =
          "rotates, scales, shears and shifts about the centre, with linear interpolation; volumes "
          "rotate about each axis, in millimetres, and patches of one slice stay in it",
      .members = {
          ProbabilityKey(),
          RangeKey({.name = "degrees",
                    .unit = "degrees",
                    .min = -360,
                    .max = 360,
                    .rows = 3,
                    .help = "angle, clockwise as displayed; for volumes one about each axis: a "
                            "range for all, or [[low, high], ...] for z, y, x"},
                   defaults.degrees[0]),
          RangeKey({.name = "scale",
                    .min = kMinAffineScale,
                    .max = kMaxAffineScale,
                    .help = "factor; larger means larger objects"},
                   defaults.scale),
          RangeKey({.name = "shear",
                    .unit = "degrees",
                    .min = -kMaxShearDegrees,
                    .max = kMaxShearDegrees,
                    .help = "angle of shear along x; not of volumes"},
                   defaults.shear),
          {.name = "translate",
           .type = KeyType::kFloatList,
           .fallback = Json::array({0.0, 0.0}),
           .min = 0,
           .max = 1,
           .min_items = 2,
           .max_items = 2,
           .help = "largest shift along y and x, as a share of the patch's side; not of volumes"},
          BorderKey()}};
}

AffineOptions AffineOptions::FromJson(const Json& options) {
  AffineOptions affine;
  affine.p = options["p"].get<double>();
  affine.degrees = RangesOf(options, "degrees");
  affine.scale = RangeOf(options, "scale");
  affine.shear = RangeOf(options, "shear");
  affine.translate_y = options["translate"][0].get<double>();
  affine.translate_x = options["translate"][1].get<double>();
  affine.border = BorderOf(options);
  return affine;
}

}  // namespace patchbay::plan

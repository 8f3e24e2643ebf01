// Ops of chains that work in float, for tests on both devices.
#pragma once

#include <vector>

#include "runtime/format/json/json.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

/// Steps of which a random chain is made; each changes every patch.
inline std::vector<Json> FloatSteps() {
  return {Json::parse(R"({"affine": {"p": 1, "degrees": [-40, 40], "scale": [0.7, 1.4],
                         "shear": [-10, 10], "translate": [0.1, 0.1]}})"),
          Json::parse(R"({"elastic": {"p": 1, "points": 6, "amplitude": 0.4}})"),
          Json::parse(R"({"stain_normalize": {}})"),
          Json::parse(R"({"stain_jitter": {"p": 1}})"),
          Json::parse(R"({"hed_jitter": {"p": 1, "alpha": 0.2, "beta": 0.1}})"),
          Json::parse(R"({"color_jitter": {"p": 1, "brightness": [0.7, 1.3],
                         "contrast": [0.7, 1.3], "saturation": [0.5, 1.5], "hue": [-0.1, 0.1]}})"),
          Json::parse(R"({"gaussian_blur": {"p": 1, "sigma": [0.4, 2]}})"),
          Json::parse(R"({"gaussian_noise": {"p": 1, "std": [0.01, 0.1]}})"),
          Json::parse(R"({"normalize": {"mean": [0.7], "std": [0.2]}})"),
          Json::parse(R"({"cast": {"dtype": "bfloat16"}})"),
          Json::parse(R"({"crop": {"margin": [2, 3]}})"),
          Json::parse(R"({"flip": {}})")};
}

inline plan::MacenkoFit OtherFit() {
  plan::MacenkoFit fit = plan::DefaultMacenko();
  fit.stains = {{{0.65, 0.70, 0.29}, {0.07, 0.99, 0.11}}};
  fit.max_concentrations = {1.2, 0.9};
  return fit;
}

inline plan::ReinhardFit OtherReinhard() { return {.mean = {61, 28, -20}, .std = {14, 9, 6}}; }

/// icc_to_srgb: of uint8 alone.
inline Json IccStep() { return Json::parse(R"({"icc_to_srgb": {}})"); }

/// stain_normalize in L*a*b*: a chain has room for one stain_normalize.
inline Json ReinhardStep() {
  return Json::parse(R"({"stain_normalize": {"profile": "reinhard"}})");
}

}  // namespace patchbay::ops

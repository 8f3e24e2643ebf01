// Ops of chains of volumes, for tests on both devices.
#pragma once

#include <string>
#include <vector>

#include "ops/chain/chain.h"
#include "runtime/format/json/json.h"

namespace patchbay::ops {

inline constexpr DType kVolumeSourceTypes[] = {DType::kUint8, DType::kUint16, DType::kInt16,
                                               DType::kFloat32};

/// Steps of one chain; each changes every patch.
inline std::vector<std::string> VolumeSteps() {
  return {R"({"window": {"range": [20, 180]}})",
          R"({"zscore": {}})",
          R"({"flip": {"axes": ["z", "y", "x"]}})",
          R"({"affine": {"p": 1, "degrees": [-40, 40], "scale": [0.7, 1.4]}})",
          R"({"elastic": {"p": 1, "points": 5, "amplitude": 0.2}})",
          R"({"gaussian_noise": {"p": 1, "std": [0.01, 0.1]}})",
          R"({"gaussian_blur": {"p": 1, "sigma": [0.4, 1.2]}})",
          R"({"brightness": {"p": 1}})",
          R"({"contrast": {"p": 1}})",
          R"({"low_resolution": {"p": 1}})",
          R"({"gamma": {"p": 1, "retain_stats": true}})",
          R"({"gamma": {"p": 1, "invert": true}})",
          R"({"cast": {"dtype": "bfloat16"}})"};
}

/// Also steps that a chain has instead of one of them.
inline std::vector<std::string> EachVolumeStep() {
  std::vector<std::string> steps = VolumeSteps();
  steps.insert(steps.end(), {R"({"zscore": {"over": "nonzero"}})", R"({"percentile": {}})"});
  return steps;
}

inline ChainOptions VolumeStepOptions(const std::string& steps, const Extent& patch, DType source) {
  ChainOptions options;
  options.patch = patch;
  options.channels = 1;
  options.source_dtype = source;
  options.augment = *ParseJson("[" + steps + "]", "steps");
  return options;
}

inline DrawKey VolumeStepKey(std::uint64_t ordinal) {
  return {17, 1, ordinal, 0, DrawStream::kParameters};
}

inline plan::VolumeFacts VolumeStepFacts() {
  plan::VolumeFacts facts;
  facts.spacing = {1.5, 0.8, 0.8};
  facts.mean = 0.4;
  facts.std = 0.3;
  return facts;
}

}  // namespace patchbay::ops

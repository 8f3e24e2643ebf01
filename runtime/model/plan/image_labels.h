// The label sets of a plan's images: which revision of the config's set each of them has.
#pragma once

#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// Leaves each image its revision and the label of its row where the config has them, and nothing
/// without. InvalidArgument when an image has none, when two have other classes, or when
/// CheckLabels says so.
Status SettleLabels(const RunConfig& config, std::vector<PlannedImage>& images);

/// {"classes", "sets": [digest of each image]} of a label set, {"values": [label of each image]} of
/// a column; null without labels.
Json LabelsToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for what LabelsToJson does not give of so many images.
Status LabelsFromJson(const RunConfig& config, const Json& value,
                      std::vector<PlannedImage>& images);

/// The arrays that the config's labels add: "mask", "label".
std::vector<ArrayLayout> LabelArrays(const RunConfig& config);

}  // namespace patchbay::plan

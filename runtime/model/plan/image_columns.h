// Columns of a plan's text: a list with one value of every image.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/plan_fields.h"

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

/// One member of every image.
template <typename T>
Json ColumnOf(const std::vector<PlannedImage>& images, T PlannedImage::*member) {
  Json column = Json::array();
  for (const PlannedImage& image : images) column.push_back(JsonOf(image.*member));
  return column;
}

/// Reads a member of all images from `text[name]`. InvalidArgument unless it has one value of the
/// member's type per image.
template <typename T>
Status ReadColumn(const Json& text, std::string_view name, T PlannedImage::*member,
                  std::vector<PlannedImage>& images) {
  const Json column = text.is_object() ? text.value(name, Json()) : Json();
  if (!column.is_array() || column.size() != images.size()) {
    return absl::InvalidArgumentError(StrCat("plan: ", name, ": expected one value per image"));
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Status read = ReadJson(column[i], JsonPlace(name), images[i].*member);
    if (!read.ok()) return About(read, "plan", {SubjectKind::kImage, i, ""});
  }
  return absl::OkStatus();
}

/// Leaves each image what the config's stain_normalize needs, and nothing without it.
/// InvalidArgument when an image lacks it, when it is not three channels of uint8, when a reference
/// is not settled, or when an image names none of them.
Status SettleStains(const RunConfig& config, std::vector<PlannedImage>& images);

/// One row an image: its values, where references go by scanner the number of its own, and the name
/// of the fallback if there is one. Null without stain_normalize.
Json StainsToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for what StainsToJson does not give of so many images.
Status StainsFromJson(const RunConfig& config, const Json& rows, std::vector<PlannedImage>& images);

/// Whether patches of a set of places lie anywhere in the image.
bool IsAnywhere(const RunConfig& config, std::size_t set);

/// InvalidArgument unless the image has the places and groups that sampling asks for.
Status CheckSampled(const RunConfig& config, const PlannedImage& image);

/// The members of a plan's text: "places", "groups", "positions", as far as the config needs them.
Json SampledToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for what SampledToJson does not give of so many images.
Status SampledFromJson(const Json& plan, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan

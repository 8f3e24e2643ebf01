// Columns of a plan's text: a list with one value of every image.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/plan_fields.h"

namespace patchbay::plan {

/// Keeps the label revision of each image and the label of its row if the config uses them, and
/// removes them otherwise. InvalidArgument when an image has none, when the classes of two images
/// differ, or from CheckLabels.
Status SettleLabels(const RunConfig& config, std::vector<PlannedImage>& images);

/// {"classes", "sets": [digest of each image]} of a label set, "further" with the same of each
/// further set, {"values": [label of each image]} of a column; empty without labels.
Json LabelsToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for anything but the output of LabelsToJson for so many images.
Status LabelsFromJson(const RunConfig& config, const Json& value,
                      std::vector<PlannedImage>& images);

/// The arrays that the config's labels add: "mask", "mask_1", ..., "label".
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
    return InvalidArgument("plan: ", name, ": expected one value per image");
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Status read = ReadJson(column[i], JsonPlace(name), images[i].*member);
    if (!read.ok()) return About(read, "plan", {SubjectKind::kImage, i, ""});
  }
  return absl::OkStatus();
}

/// Keeps the stain facts of each image if the config has stain_normalize, and removes them
/// otherwise. InvalidArgument when an image lacks them (but for `misfit: skip`) or is not three
/// channels of uint8, when a reference is not settled, or when an image's reference does not exist.
Status SettleStains(const RunConfig& config, std::vector<PlannedImage>& images);

/// One row per image: its values (none where it stays unnormalised), the number of its reference
/// where there is one per scanner, and the name of the fallback if there is one. Null without
/// stain_normalize.
Json StainsToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for anything but the output of StainsToJson for so many images.
Status StainsFromJson(const RunConfig& config, const Json& rows, std::vector<PlannedImage>& images);

/// Whether patches of a set of places lie anywhere in the image.
bool IsAnywhere(const RunConfig& config, std::size_t set);

/// InvalidArgument unless the image has the places and groups that sampling asks for.
Status CheckSampled(const RunConfig& config, const PlannedImage& image);

/// The members of a plan's text: "places", "groups", "positions", as far as the config needs them.
Json SampledToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for anything but the output of SampledToJson for so many images.
Status SampledFromJson(const Json& plan, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan

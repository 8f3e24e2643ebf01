// Columns of a plan's text: a list with one value of every image.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/plan_fields.h"

namespace patchbay::plan {

/// One member of every image.
template <typename T>
Json ColumnOf(const std::vector<PlannedImage>& images, T PlannedImage::*member) {
  Json column = Json::array();
  for (const PlannedImage& image : images) column.push_back(JsonOf(image.*member));
  return column;
}

/// From `text[name]`. InvalidArgument unless it has as many values, of the member's type.
template <typename T>
Status ReadColumn(const Json& text, std::string_view name, T PlannedImage::*member,
                  std::vector<PlannedImage>& images) {
  const Json column = text.is_object() ? text.value(name, Json()) : Json();
  if (!column.is_array() || column.size() != images.size()) {
    return absl::InvalidArgumentError(StrCat("plan: ", name, ": not one value an image"));
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Status read = ReadJson(column[i], JsonPlace(name), images[i].*member);
    if (!read.ok()) return About(read, "plan", {SubjectKind::kImage, i, ""});
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan

#include "workers/jobs/plan/image_row.h"

#include <optional>
#include <utility>

namespace patchbay::workers {
namespace {

Json ToJson(const ImageRow& row) {
  if (!row.fault.empty()) return row.fault;
  const plan::PlannedImage& image = row.image;
  Json value = {image.digest.Hex(), image.kind,     image.size.z,        image.size.y,
                image.size.x,       image.channels, NameOf(image.dtype), row.stamp};
  if (!row.path.empty()) value.push_back(row.path);
  if (image.labels) {
    value.push_back(
        {{"labels", image.labels->digest.Hex()}, {"classes", plan::ToJson(image.labels->classes)}});
  }
  return value;
}

/// Takes the label set off the end of a row that has one.
StatusOr<std::optional<plan::ImageLabels>> TakeLabels(Json& row) {
  if (!row.is_array() || row.empty() || !row.back().is_object()) return std::nullopt;
  constexpr std::string_view kWhat = "read image row: labels";
  plan::ImageLabels labels;
  PB_ASSIGN_OR_RETURN(const std::string digest, JsonString(row.back(), "labels", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* classes, JsonMember(row.back(), "classes", kWhat));
  PB_ASSIGN_OR_RETURN(labels.digest, Digest::FromHex(digest));
  PB_ASSIGN_OR_RETURN(labels.classes, plan::LabelClassesFromJson(*classes));
  row.erase(row.size() - 1);
  return labels;
}

StatusOr<ImageRow> ImageRowFromJson(Json value) {
  ImageRow row;
  PB_ASSIGN_OR_RETURN(row.image.labels, TakeLabels(value));
  if (value.is_string()) {
    row.fault = value.get<std::string>();
    return row;
  }
  const bool whole = value.is_array() && (value.size() == 8 || value.size() == 9) &&
                     value[0].is_string() && value[1].is_string() && value[2].is_number_integer() &&
                     value[3].is_number_integer() && value[4].is_number_integer() &&
                     value[5].is_number_integer() && value[6].is_string() && value[7].is_string();
  if (!whole) return absl::InvalidArgumentError("read image row: not an image");
  PB_ASSIGN_OR_RETURN(row.image.digest, Digest::FromHex(value[0].get_ref<const std::string&>()));
  row.image.kind = value[1].get<std::string>();
  row.image.size = {value[2].get<std::int64_t>(), value[3].get<std::int64_t>(),
                    value[4].get<std::int64_t>()};
  row.image.channels = value[5].get<int>();
  const std::optional<DType> dtype = DTypeFromName(value[6].get_ref<const std::string&>());
  if (!dtype) return absl::InvalidArgumentError("read image row: unknown dtype");
  row.image.dtype = *dtype;
  row.stamp = value[7].get<std::string>();
  if (value.size() == 9) {
    if (!value[8].is_string()) return absl::InvalidArgumentError("read image row: no path");
    row.path = value[8].get<std::string>();
  }
  return row;
}

}  // namespace

Json ToJson(const std::vector<ImageRow>& rows) {
  Json list = Json::array();
  for (const ImageRow& row : rows) list.push_back(ToJson(row));
  return list;
}

StatusOr<std::vector<ImageRow>> ImageRowsFromJson(const Json& value) {
  if (!value.is_array()) return absl::InvalidArgumentError("read image rows: no list");
  std::vector<ImageRow> rows;
  for (const Json& item : value) {
    PB_ASSIGN_OR_RETURN(ImageRow row, ImageRowFromJson(item));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace patchbay::workers

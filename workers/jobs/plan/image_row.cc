#include "workers/jobs/plan/image_row.h"

#include <optional>
#include <utility>

#include "runtime/model/plan/image_volumes.h"

namespace patchbay::workers {
namespace {

Json ToJson(const ImageRow& row) {
  if (!row.fault.empty()) return row.fault;
  const plan::PlannedImage& image = row.image;
  Json value = {image.digest.Hex(), image.kind,     image.size.z,        image.size.y,
                image.size.x,       image.channels, NameOf(image.dtype), row.stamp};
  if (!row.path.empty()) value.push_back(row.path);
  Json more = Json::object();
  if (image.labels) {
    more["labels"] = image.labels->digest.Hex();
    more["classes"] = plan::ToJson(image.labels->classes);
  }
  if (!image.places.empty()) {
    more["indexes"] = Json::array();
    more["places"] = Json::array();
    for (const Digest& digest : image.indexes) more["indexes"].push_back(digest.Hex());
    for (const plan::PlaceCount& count : image.places) {
      more["places"].push_back({count.places, count.pixels_each});
    }
  }
  if (!image.listed.empty()) more["listed"] = plan::EncodePositions(image.listed);
  if (!image.views.empty()) more["views"] = plan::ToJson(image.views);
  if (image.macenko && image.reinhard) {
    more["stain"] = plan::ToJson(plan::StainFit{*image.macenko, *image.reinhard});
  }
  if (image.icc) more["icc"] = plan::ToJson(*image.icc);
  if (row.mpp) more["mpp"] = *row.mpp;
  more["facts"] = results::ToJson(row.facts);
  if (row.mpp_assumed) more["mpp_assumed"] = true;
  if (row.spacing) more["spacing"] = {row.spacing->z, row.spacing->y, row.spacing->x};
  if (!row.orientation.empty()) more["orientation"] = row.orientation;
  if (image.volume) more["volume"] = plan::ToJson(*image.volume);
  value.push_back(std::move(more));
  return value;
}

Status TakePlaces(const Json& value, plan::PlannedImage& image) {
  const auto wrong = [] { return absl::InvalidArgumentError("read image row: no places"); };
  PB_ASSIGN_OR_RETURN(const Json* indexes, JsonMember(value, "indexes", "image row"));
  PB_ASSIGN_OR_RETURN(const Json* places, JsonMember(value, "places", "image row"));
  for (const Json& digest : *indexes) {
    if (!digest.is_string()) return wrong();
    PB_ASSIGN_OR_RETURN(image.indexes.emplace_back(),
                        Digest::FromHex(digest.get_ref<const std::string&>()));
  }
  for (const Json& count : *places) {
    if (!count.is_array() || count.size() != 2 || !count[0].is_number_unsigned() ||
        !count[1].is_number_unsigned()) {
      return wrong();
    }
    image.places.push_back({count[0].get<std::uint64_t>(), count[1].get<std::uint64_t>()});
  }
  return absl::OkStatus();
}

Status TakeLabels(const Json& value, plan::PlannedImage& image) {
  constexpr std::string_view kWhat = "read image row: labels";
  plan::ImageLabels labels;
  PB_ASSIGN_OR_RETURN(const std::string digest, JsonString(value, "labels", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* classes, JsonMember(value, "classes", kWhat));
  PB_ASSIGN_OR_RETURN(labels.digest, Digest::FromHex(digest));
  PB_ASSIGN_OR_RETURN(labels.classes, plan::LabelClassesFromJson(*classes));
  image.labels = std::move(labels);
  return absl::OkStatus();
}

StatusOr<plan::PerAxis> SpacingFromJson(const Json& mm) {
  const bool whole = mm.is_array() && mm.size() == 3 && mm[0].is_number() && mm[1].is_number() &&
                     mm[2].is_number();
  if (!whole) return absl::InvalidArgumentError("read image row: spacing: not three numbers");
  return plan::PerAxis{mm[0].get<double>(), mm[1].get<double>(), mm[2].get<double>()};
}

/// Takes what not every image has off the end of a row.
Status TakeMore(Json& row, ImageRow& taken) {
  plan::PlannedImage& image = taken.image;
  if (!row.is_array() || row.empty() || !row.back().is_object()) return absl::OkStatus();
  const Json more = row.back();
  row.erase(row.size() - 1);
  if (more.contains("labels")) PB_RETURN_IF_ERROR(TakeLabels(more, image));
  if (more.contains("places")) PB_RETURN_IF_ERROR(TakePlaces(more, image));
  if (more.contains("listed")) {
    PB_ASSIGN_OR_RETURN(const std::string listed, JsonString(more, "listed", "image row"));
    PB_ASSIGN_OR_RETURN(image.listed, plan::DecodePositions(listed));
  }
  if (more.contains("views")) {
    PB_ASSIGN_OR_RETURN(image.views, plan::ViewsFromJson(more["views"]));
  }
  if (more.contains("icc")) {
    PB_ASSIGN_OR_RETURN(image.icc, plan::ImageIccFromJson(more["icc"]));
  }
  if (more.contains("mpp")) {
    PB_ASSIGN_OR_RETURN(taken.mpp, JsonDouble(more, "mpp", "image row"));
  }
  PB_ASSIGN_OR_RETURN(const Json* facts, JsonMember(more, "facts", "image row"));
  PB_ASSIGN_OR_RETURN(taken.facts, results::ImageFactsFromJson(*facts));
  if (more.contains("mpp_assumed")) {
    PB_ASSIGN_OR_RETURN(taken.mpp_assumed, JsonBool(more, "mpp_assumed", "image row"));
  }
  if (more.contains("spacing")) {
    PB_ASSIGN_OR_RETURN(taken.spacing, SpacingFromJson(more["spacing"]));
  }
  if (more.contains("orientation")) {
    PB_ASSIGN_OR_RETURN(taken.orientation, JsonString(more, "orientation", "image row"));
  }
  if (more.contains("volume")) {
    PB_ASSIGN_OR_RETURN(image.volume, plan::VolumeFactsFromJson(more["volume"]));
  }
  if (!more.contains("stain")) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const plan::StainFit fit, plan::StainFitFromJson(more["stain"]));
  image.macenko = fit.macenko;
  image.reinhard = fit.reinhard;
  return absl::OkStatus();
}

StatusOr<ImageRow> ImageRowFromJson(Json value) {
  ImageRow row;
  PB_RETURN_IF_ERROR(TakeMore(value, row));
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

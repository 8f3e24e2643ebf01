#include "runtime/format/zarr/ngff.h"

#include <cmath>
#include <filesystem>

#include "runtime/core/other_version.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/metadata.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kMaxAxes = 5;
constexpr std::size_t kMaxPathBytes = 1024;

Status MalformedNgff(std::string_view what, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "read multiscales", what, cause);
}

std::string TextOr(const Json& object, const char* key, std::string_view otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::string(otherwise);
  return found->get<std::string>();
}

/// A path that stays below the store: relative, no "..", nothing hidden behind NUL.
bool StaysInside(const std::string& path) {
  if (path.empty() || path.size() > kMaxPathBytes || path.find('\0') != std::string::npos) {
    return false;
  }
  const std::filesystem::path parts(path);
  if (parts.is_absolute()) return false;
  for (const auto& part : parts) {
    if (part == "..") return false;
  }
  return true;
}

Status ParseAxes(const Json& multiscale, std::string_view what, Multiscales& out) {
  const auto axes = multiscale.find("axes");
  if (axes == multiscale.end() || !axes->is_array() || axes->empty() || axes->size() > kMaxAxes) {
    return MalformedNgff(what, StrCat("axes is not a list of 1 to ", kMaxAxes));
  }
  for (const Json& entry : *axes) {
    NgffAxis axis;
    if (entry.is_string()) {  // NGFF 0.3
      axis.name = entry.get<std::string>();
    } else if (entry.is_object() && entry.contains("name") && entry["name"].is_string()) {
      axis.name = entry["name"].get<std::string>();
      axis.type = TextOr(entry, "type", "");
      axis.unit = TextOr(entry, "unit", "");
    } else {
      return MalformedNgff(what, "an axis without a name");
    }
    for (const NgffAxis& earlier : out.axes) {
      if (earlier.name == axis.name) {
        return MalformedNgff(what, StrCat("axis ", axis.name, " twice"));
      }
    }
    out.axes.push_back(std::move(axis));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<double>> Numbers(const Json& transform, const char* key, std::size_t count,
                                      bool positive, std::string_view what) {
  const auto found = transform.find(key);
  if (found == transform.end() || !found->is_array() || found->size() != count) {
    return MalformedNgff(what, StrCat(key, " is not one number per axis"));
  }
  std::vector<double> out;
  for (const Json& value : *found) {
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!std::isfinite(number) || (positive && number <= 0)) {
      return MalformedNgff(what, StrCat(key, " holds ", DumpJson(value)));
    }
    out.push_back(number);
  }
  return out;
}

/// Applies a list of scale and translation transforms to the level.
Status ApplyTransforms(const Json& holder, std::string_view what, NgffLevel& level) {
  const auto list = holder.find("coordinateTransformations");
  if (list == holder.end()) return absl::OkStatus();
  if (!list->is_array() || list->size() > 4) {
    return MalformedNgff(what, "coordinateTransformations");
  }
  for (const Json& transform : *list) {
    if (!transform.is_object()) return MalformedNgff(what, "a coordinate transformation");
    const std::string type = TextOr(transform, "type", "");
    const std::size_t count = level.scale.size();
    if (type == "scale") {
      PB_ASSIGN_OR_RETURN(const auto factors, Numbers(transform, "scale", count, true, what));
      for (std::size_t i = 0; i < count; ++i) {
        level.scale[i] *= factors[i];
        level.translation[i] *= factors[i];
      }
    } else if (type == "translation") {
      PB_ASSIGN_OR_RETURN(const auto shifts, Numbers(transform, "translation", count, false, what));
      for (std::size_t i = 0; i < count; ++i) level.translation[i] += shifts[i];
    } else if (type != "identity") {
      return ErrorAbout(absl::StatusCode::kUnimplemented, "read multiscales", what,
                        StrCat("coordinate transformation '", type, "' is not supported"));
    }
  }
  return absl::OkStatus();
}

Status ParseLevels(const Json& multiscale, std::string_view what, Multiscales& out) {
  const auto datasets = multiscale.find("datasets");
  if (datasets == multiscale.end() || !datasets->is_array() || datasets->empty() ||
      datasets->size() > kMaxLevels) {
    return MalformedNgff(what, StrCat("datasets is not a list of 1 to ", kMaxLevels));
  }
  for (const Json& dataset : *datasets) {
    if (!dataset.is_object()) return MalformedNgff(what, "a dataset is not an object");
    NgffLevel level;
    level.path = TextOr(dataset, "path", "");
    if (!StaysInside(level.path)) {
      return MalformedNgff(what, StrCat("dataset path '", level.path, "' is not below the store"));
    }
    level.scale.assign(out.axes.size(), 1.0);
    level.translation.assign(out.axes.size(), 0.0);
    PB_RETURN_IF_ERROR(ApplyTransforms(dataset, what, level));
    PB_RETURN_IF_ERROR(ApplyTransforms(multiscale, what, level));
    out.levels.push_back(std::move(level));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Multiscales> ParseMultiscales(const Json& attributes, std::string_view what) {
  const bool wrapped = attributes.contains("ome") && attributes["ome"].is_object();
  const Json& holder = wrapped ? attributes["ome"] : attributes;
  const auto list = holder.find("multiscales");
  if (list == holder.end()) {
    return NotFound("read multiscales: ", what, ": no OME-NGFF multiscales");
  }
  if (!list->is_array() || list->empty() || !(*list)[0].is_object()) {
    return MalformedNgff(what, "multiscales is not a list of objects");
  }
  const Json& multiscale = (*list)[0];
  Multiscales out;
  out.version = TextOr(holder, "version", TextOr(multiscale, "version", "0.4"));
  if (out.version != "0.4" && out.version != "0.5") {
    return ErrorAbout(
        absl::StatusCode::kUnimplemented, "read multiscales", what,
        StrCat("OME-NGFF ", OtherVersion(out.version, "0.4 and 0.5",
                                         "have the program that made it write one of these")));
  }
  PB_RETURN_IF_ERROR(ParseAxes(multiscale, what, out));
  PB_RETURN_IF_ERROR(ParseLevels(multiscale, what, out));
  return out;
}

StatusOr<Multiscales> ReadMultiscales(const Folders& allowed, const std::string& store) {
  PB_ASSIGN_OR_RETURN(const GroupMetadata group, ReadGroupMetadata(allowed, store));
  return ParseMultiscales(group.attributes, store);
}

}  // namespace patchbay::zarr

#include "runtime/model/plan/image_sampling.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/image_columns.h"

namespace patchbay::plan {
namespace {

constexpr std::uint64_t kMaxIndexedPixels = std::uint64_t{1} << 44;  ///< of one image

/// Sets of places that an image has.
std::size_t SetsOf(const RunConfig& config, const PlannedImage& image) {
  if (!config.foreground) return std::max<std::size_t>(1, config.class_weights.size());
  std::size_t classes = config.foreground->classes.size();
  if (classes == 0 && image.labels) {
    for (const NamedValue& one : image.labels->classes)
      classes += one.name == kBackgroundClass ? 0 : 1;
  }
  return 1 + classes;
}

}  // namespace

bool IsAnywhere(const RunConfig& config, std::size_t set) {
  return config.foreground && set == kAnywhere &&
         config.foreground->profile != ForegroundProfile::kMonai;
}

Status CheckSampled(const RunConfig& config, const PlannedImage& image) {
  const bool by_component = config.foreground && config.foreground->by_component;
  const bool by_class = config.foreground || !config.class_weights.empty();
  const std::size_t indexes =
      (config.tissue_fraction ? 1 : 0) + (by_class ? 1 : 0) + (by_component ? 1 : 0);
  const std::size_t sets = indexes == 0 ? 0 : SetsOf(config, image);
  if (image.groups.size() != config.weight_by.size()) {
    return absl::InvalidArgumentError("key 'sampling.weight_by': the dataset is not a table");
  }
  const auto too_many = [](const PlaceCount& count) {
    return count.pixels_each == 0 || count.places > kMaxIndexedPixels / count.pixels_each;
  };
  if (std::any_of(image.places.begin(), image.places.end(), too_many)) {
    return absl::InvalidArgumentError("its places are too many");
  }
  const auto is_outside = [&](const PlanePoint& at) {
    return at.y < 0 || at.x < 0 || at.y >= image.size.y || at.x >= image.size.x;
  };
  if ((config.positions != Positions::kListed && !image.listed.empty()) ||
      std::any_of(image.listed.begin(), image.listed.end(), is_outside)) {
    return absl::InvalidArgumentError("its positions are not of the image");
  }
  if (image.indexes.size() == indexes && image.places.size() == sets) return absl::OkStatus();
  return absl::InvalidArgumentError("its places do not match the keys of sampling");
}

Json SampledToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  Json text = Json::object();
  if (NeedsPlaces(config)) {
    text["places"]["indexes"] = ColumnOf(images, &PlannedImage::indexes);
    text["places"]["counts"] = ColumnOf(images, &PlannedImage::places);
  }
  if (!config.weight_by.empty()) text["groups"] = ColumnOf(images, &PlannedImage::groups);
  if (config.positions == Positions::kListed) {
    text["positions"] = ColumnOf(images, &PlannedImage::listed);
  }
  return text;
}

Status SampledFromJson(const Json& plan, std::vector<PlannedImage>& images) {
  if (plan.contains("places")) {
    const Json& places = plan["places"];
    PB_RETURN_IF_ERROR(ReadColumn(places, "indexes", &PlannedImage::indexes, images));
    PB_RETURN_IF_ERROR(ReadColumn(places, "counts", &PlannedImage::places, images));
  }
  if (plan.contains("groups")) {
    PB_RETURN_IF_ERROR(ReadColumn(plan, "groups", &PlannedImage::groups, images));
  }
  if (!plan.contains("positions")) return absl::OkStatus();
  return ReadColumn(plan, "positions", &PlannedImage::listed, images);
}

}  // namespace patchbay::plan

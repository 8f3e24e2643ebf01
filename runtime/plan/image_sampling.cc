#include "runtime/plan/image_sampling.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/plan/class_table.h"

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

/// The members `name` of `value`, one list an image; absent = none.
StatusOr<const Json*> ListsOf(const Json& value, const char* name, std::size_t images) {
  static const Json kNone = Json::array();
  if (!value.is_object() || !value.contains(name)) return &kNone;
  const Json& lists = value[name];
  const auto is_list = [](const Json& list) { return list.is_array(); };
  if (lists.is_array() && lists.size() == images &&
      std::all_of(lists.begin(), lists.end(), is_list)) {
    return &lists;
  }
  return absl::InvalidArgumentError(StrCat("plan: ", name, ": not a list an image"));
}

/// {"indexes", "counts"} of every image.
Json PlacesToJson(const std::vector<PlannedImage>& images) {
  Json indexes = Json::array(), places = Json::array();
  for (const PlannedImage& image : images) {
    Json digests = Json::array(), counts = Json::array();
    for (const Digest& digest : image.indexes) digests.push_back(digest.Hex());
    for (const PlaceCount& count : image.places) {
      counts.push_back({count.places, count.pixels_each});
    }
    indexes.push_back(std::move(digests));
    places.push_back(std::move(counts));
  }
  return {{"indexes", std::move(indexes)}, {"counts", std::move(places)}};
}

Json GroupsToJson(const std::vector<PlannedImage>& images) {
  Json groups = Json::array();
  for (const PlannedImage& image : images) groups.push_back(image.groups);
  return groups;
}

Json ListedToJson(const std::vector<PlannedImage>& images) {
  Json listed = Json::array();
  for (const PlannedImage& image : images) listed.push_back(EncodePositions(image.listed));
  return listed;
}

Status ListedFromJson(const Json& plan, std::vector<PlannedImage>& images) {
  if (!plan.contains("positions")) return absl::OkStatus();
  const Json& listed = plan["positions"];
  if (!listed.is_array() || listed.size() != images.size()) {
    return absl::InvalidArgumentError("plan: positions: not one text an image");
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!listed[i].is_string()) return absl::InvalidArgumentError("plan: positions: no text");
    PB_ASSIGN_OR_RETURN(images[i].listed, DecodePositions(listed[i].get_ref<const std::string&>()));
  }
  return absl::OkStatus();
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
    return absl::InvalidArgumentError("key 'sampling.weight_by': the dataset is no table");
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
  return absl::InvalidArgumentError("its places are not those that sampling asks for");
}

Json SampledToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  Json text = Json::object();
  if (NeedsPlaces(config)) text["places"] = PlacesToJson(images);
  if (!config.weight_by.empty()) text["groups"] = GroupsToJson(images);
  if (config.positions == Positions::kListed) text["positions"] = ListedToJson(images);
  return text;
}

Status SampledFromJson(const Json& plan, std::vector<PlannedImage>& images) {
  const Json sets = plan.value("places", Json());
  PB_ASSIGN_OR_RETURN(const Json* groups, ListsOf(plan, "groups", images.size()));
  PB_ASSIGN_OR_RETURN(const Json* indexes, ListsOf(sets, "indexes", images.size()));
  PB_ASSIGN_OR_RETURN(const Json* places, ListsOf(sets, "counts", images.size()));
  const auto wrong = [] { return absl::InvalidArgumentError("plan: places of another form"); };
  for (std::size_t i = 0; i < groups->size(); ++i) {
    for (const Json& group : (*groups)[i]) {
      if (!group.is_number_unsigned()) return wrong();
      images[i].groups.push_back(group.get<std::uint32_t>());
    }
  }
  for (std::size_t i = 0; i < indexes->size(); ++i) {
    for (const Json& digest : (*indexes)[i]) {
      if (!digest.is_string()) return wrong();
      PB_ASSIGN_OR_RETURN(images[i].indexes.emplace_back(),
                          Digest::FromHex(digest.get_ref<const std::string&>()));
    }
  }
  for (std::size_t i = 0; i < places->size(); ++i) {
    for (const Json& count : (*places)[i]) {
      const bool whole = count.is_array() && count.size() == 2 && count[0].is_number_unsigned() &&
                         count[1].is_number_unsigned();
      if (!whole) return wrong();
      images[i].places.push_back({count[0].get<std::uint64_t>(), count[1].get<std::uint64_t>()});
    }
  }
  return ListedFromJson(plan, images);
}

}  // namespace patchbay::plan

#include "runtime/model/plan/image_sampling.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"

namespace patchbay::plan {
namespace {

constexpr std::uint64_t kMaxIndexedPixels = std::uint64_t{1} << 44;  ///< of one image
constexpr std::uint64_t kMaxGroup = std::numeric_limits<std::uint32_t>::max();

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

/// A list an image, of the members of one of its lists as `put` writes them.
template <typename T, typename Put>
Json ListsOf(const std::vector<PlannedImage>& images, std::vector<T> PlannedImage::*list,
             const Put& put) {
  Json lists = Json::array();
  for (const PlannedImage& image : images) {
    Json& one = lists.emplace_back(Json::array());
    for (const T& member : image.*list) one.push_back(put(member));
  }
  return lists;
}

/// Adds what ListsOf gave, the member `name` of `value`; absent = none. `take` gives a StatusOr of
/// a member.
template <typename T, typename Take>
Status AddLists(const Json& value, const char* name, std::vector<T> PlannedImage::*list,
                const Take& take, std::vector<PlannedImage>& images) {
  if (!value.is_object() || !value.contains(name)) return absl::OkStatus();
  const Json& lists = value[name];
  const auto is_list = [](const Json& one) { return one.is_array(); };
  if (!lists.is_array() || lists.size() != images.size() ||
      !std::all_of(lists.begin(), lists.end(), is_list)) {
    return absl::InvalidArgumentError(StrCat("plan: ", name, ": not a list an image"));
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    for (const Json& member : lists[i]) {
      StatusOr<T> taken = take(member);
      if (!taken.ok())
        return About(Annotate(taken.status(), name), "plan", {SubjectKind::kImage, i, ""});
      (images[i].*list).push_back(*std::move(taken));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::uint32_t> TakeGroup(const Json& group) {
  if (group.is_number_unsigned() && group.get<std::uint64_t>() <= kMaxGroup) {
    return static_cast<std::uint32_t>(group.get<std::uint64_t>());
  }
  return absl::InvalidArgumentError("not the number of a group");
}

StatusOr<Digest> TakeDigest(const Json& digest) {
  if (digest.is_string()) return Digest::FromHex(digest.get_ref<const std::string&>());
  return absl::InvalidArgumentError("not a digest");
}

StatusOr<PlaceCount> TakeCount(const Json& count) {
  const bool is_pair = count.is_array() && count.size() == 2 && count[0].is_number_unsigned() &&
                       count[1].is_number_unsigned();
  if (is_pair) return PlaceCount{count[0].get<std::uint64_t>(), count[1].get<std::uint64_t>()};
  return absl::InvalidArgumentError("not places and the pixels of each");
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
    if (!listed[i].is_string()) return absl::InvalidArgumentError("plan: positions: not text");
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
    text["places"]["indexes"] = ListsOf(images, &PlannedImage::indexes,
                                        [](const Digest& digest) { return Json(digest.Hex()); });
    text["places"]["counts"] = ListsOf(images, &PlannedImage::places, [](const PlaceCount& count) {
      return Json{count.places, count.pixels_each};
    });
  }
  if (!config.weight_by.empty()) {
    text["groups"] =
        ListsOf(images, &PlannedImage::groups, [](std::uint32_t group) { return Json(group); });
  }
  if (config.positions == Positions::kListed) text["positions"] = ListedToJson(images);
  return text;
}

Status SampledFromJson(const Json& plan, std::vector<PlannedImage>& images) {
  const Json places = plan.value("places", Json());
  PB_RETURN_IF_ERROR(AddLists(plan, "groups", &PlannedImage::groups, TakeGroup, images));
  PB_RETURN_IF_ERROR(AddLists(places, "indexes", &PlannedImage::indexes, TakeDigest, images));
  PB_RETURN_IF_ERROR(AddLists(places, "counts", &PlannedImage::places, TakeCount, images));
  return ListedFromJson(plan, images);
}

}  // namespace patchbay::plan

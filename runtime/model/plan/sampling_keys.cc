#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/names.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/plan/run_config_keys.h"

namespace patchbay::plan {
namespace {

using config::Key;
using config::KeyType;

constexpr char kDefaultTissueSet[] = "tissue";
constexpr char kGrid[] = "grid", kRandom[] = "random";

Status RefusedSampling(std::string_view cause) { return InvalidArgument(cause); }

constexpr auto kProfiles = NamesInOrder<ForegroundProfile>("independent", "monai", "nnunet");

Status CheckForeground(const Json& sampling) {
  if (!sampling.contains("oversample_foreground")) {
    if (!sampling.contains("foreground")) return absl::OkStatus();
    return RefusedSampling(
        "foreground needs oversample_foreground, the share of patches that it is for");
  }
  if (sampling.contains("class_weights") || sampling.contains("tissue")) {
    return RefusedSampling("oversample_foreground excludes class_weights and tissue");
  }
  if (sampling["positions"] == "random" && sampling["order"] == "shuffled" &&
      !sampling.contains("patches_per_image")) {
    return absl::OkStatus();
  }
  return RefusedSampling(
      "oversample_foreground draws the images: positions: random, order: shuffled and "
      "patches_per_epoch");
}

Status CheckPositions(const Json& positions) {
  const auto& text = positions.get_ref<const std::string&>();
  if (text == kGrid || text == kRandom || NamesTable(text)) return absl::OkStatus();
  return RefusedSampling(StrCat("'", text, "' is neither grid, random nor a table (.csv, .tsv)"));
}

bool IsListed(const Json& sampling) {
  return NamesTable(sampling["positions"].get_ref<const std::string&>());
}

Status CheckWeights(const Json& sampling) {
  if (!sampling.contains("class_weights") && !sampling.contains("weight_by")) {
    return absl::OkStatus();
  }
  const bool is_random = sampling["positions"] == kRandom;
  if (!is_random && sampling.contains("class_weights")) {
    return RefusedSampling("class_weights needs positions: random");
  }
  if (!is_random && !IsListed(sampling)) {
    return RefusedSampling("weight_by needs positions: random, or a table of them");
  }
  if (sampling.contains("patches_per_image")) {
    return RefusedSampling("class_weights and weight_by draw the images: give patches_per_epoch");
  }
  if (sampling["order"] != "shuffled") {
    return RefusedSampling(
        "class_weights and weight_by draw the images: order: sequential has no place");
  }
  if (!sampling.contains("class_weights")) return absl::OkStatus();
  const Json& weights = sampling["class_weights"];
  const auto counts = [](const Json& weight) { return weight.get<double>() > 0; };
  if (std::any_of(weights.begin(), weights.end(), counts)) return absl::OkStatus();
  return RefusedSampling("class_weights: no class has a weight above 0");
}

Status CheckSampling(const Json& sampling) {
  const bool per_image = sampling.contains("patches_per_image");
  const bool per_epoch = sampling.contains("patches_per_epoch");
  if (per_image && per_epoch) {
    return RefusedSampling("patches_per_image and patches_per_epoch exclude each other");
  }
  const bool is_weighed = IsListed(sampling) && sampling.contains("weight_by");
  if ((per_image || (per_epoch && !is_weighed)) && sampling["positions"] != kRandom) {
    return RefusedSampling("patches_per_image and patches_per_epoch need positions: random");
  }
  if (sampling.contains("tissue") && IsListed(sampling)) {
    return RefusedSampling(
        "tissue needs positions: grid or random; a table already lists the patches");
  }
  const bool stride = sampling.contains("stride"), overlap = sampling.contains("overlap");
  if (stride && overlap) return RefusedSampling("stride and overlap exclude each other");
  if ((stride || overlap) && sampling["positions"] != kGrid) {
    return RefusedSampling("stride and overlap need positions: grid");
  }
  PB_RETURN_IF_ERROR(CheckForeground(sampling));
  return CheckWeights(sampling);
}

std::vector<Key> ForegroundKeys() {
  return {{.name = "oversample_foreground",
           .type = KeyType::kFloat,
           .min = 0,
           .max = 1,
           .help = "random positions of volumes: this share of the patches is centred on the "
                   "foreground of labels.set"},
          {.name = "foreground",
           .type = KeyType::kMap,
           .optional = true,
           .help = "definition of foreground, and how it is drawn",
           .members = {{.name = "by",
                        .type = KeyType::kChoice,
                        .fallback = "voxel",
                        .choices = {"voxel", "component"},
                        .help = "every voxel of a class is equally likely, or every connected "
                                "component and then its voxels: small lesions count as much"},
                       {.name = "classes",
                        .type = KeyType::kStringList,
                        .min_items = 1,
                        .max_items = 255,
                        .help = "equally likely; if omitted: all of labels.set but background"},
                       {.name = "profile",
                        .type = KeyType::kChoice,
                        .fallback = "independent",
                        .choices = {kProfiles.list.begin(), kProfiles.list.end()},
                        .help = "each patch by itself; the others on background as MONAI; the "
                                "last of each batch as nnU-Net"}}}};
}

std::vector<Key> CountKeys() {
  return {
      {.name = "patches_per_image",
       .type = KeyType::kInt,
       .min = 1,
       .max = static_cast<double>(kMaxPatchesPerEpoch),
       .help = "random positions: patches of each image in an epoch (if omitted: as many as its "
               "grid has)"},
      {.name = "patches_per_epoch",
       .type = KeyType::kInt,
       .min = 1,
       .max = static_cast<double>(kMaxPatchesPerEpoch),
       .help = "random positions: patches of an epoch, shared out by grid size or by weight"},
      {.name = "max_per_slide",
       .type = KeyType::kInt,
       .min = 1,
       .max = static_cast<double>(kMaxPatchesPerEpoch),
       .help = "at most this many patches of one image in an epoch, different ones in each epoch; "
               "where images "
               "are drawn by weight, on average"},
      {.name = "stride",
       .type = KeyType::kIntList,
       .unit = "px",
       .min = 1,
       .max = kMaxPatchSide,
       .min_items = 2,
       .max_items = 3,
       .help = "grid: from patch to patch (if omitted: patch.size)"},
      {.name = "overlap",
       .type = KeyType::kIntList,
       .unit = "px",
       .min = 0,
       .max = kMaxPatchSide,
       .min_items = 2,
       .max_items = 3,
       .help = "grid: instead of stride, what neighbours share"}};
}

std::vector<Key> WeightKeys() {
  return {{.name = "tissue",
           .type = KeyType::kMap,
           .optional = true,
           .help = "takes patches with enough tissue only; needs stores with a mask of it",
           .members = {{.name = "min_fraction",
                        .type = KeyType::kFloat,
                        .fallback = 0.5,
                        .min = 0,
                        .max = 1,
                        .help = "share of the patch"},
                       {.name = "set",
                        .type = KeyType::kString,
                        .fallback = kDefaultTissueSet,
                        .help = "the label set that is the mask",
                        .check = CheckSetName}}},
          {.name = "class_weights",
           .type = KeyType::kNamed,
           .help = "random positions: draws a class by these weights, then a pixel of it as the "
                   "patch's centre; classes of labels.set",
           .members = {{.name = "", .type = KeyType::kFloat, .min = 0, .max = 1e6}}},
          {.name = "weight_by",
           .type = KeyType::kStringList,
           .min_items = 1,
           .max_items = 4,
           .help = "random positions of a table: every value of the first column is equally "
                   "likely, within it every value of the next"}};
}

Extent ExtentOf(const Json& list) {
  const auto sides = list.get<std::vector<std::int64_t>>();
  return {sides.size() == 3 ? sides[0] : 1, sides[sides.size() - 2], sides.back()};
}

}  // namespace

Status CheckSetName(const Json& name) {
  const auto& text = name.get_ref<const std::string&>();
  if (text.find_first_of("/\\") == std::string::npos && text.front() != '.') {
    return absl::OkStatus();
  }
  return RefusedSampling("the name of a label set has no slash and no dot in front");
}

Key SamplingKeys() {
  Key sampling = {
      .name = "sampling",
      .type = KeyType::kMap,
      .help = "patches of an epoch, and their order",
      .members = {{.name = "order",
                   .type = KeyType::kChoice,
                   .fallback = "shuffled",
                   .choices = {"shuffled", "sequential"},
                   .help = "a new permutation every epoch, or image by image, row by row"},
                  {.name = "positions",
                   .type = KeyType::kString,
                   .fallback = kGrid,
                   .help = "grid: from the origin, covers every pixel; random: places drawn afresh "
                           "for every patch of every epoch; or a table (.csv, .tsv) of slide_id, x "
                           "and y at level 0",
                   .check = CheckPositions}},
      .check = CheckSampling};
  for (Key& key : CountKeys()) sampling.members.push_back(std::move(key));
  for (Key& key : ForegroundKeys()) sampling.members.push_back(std::move(key));
  for (Key& key : WeightKeys()) sampling.members.push_back(std::move(key));
  return sampling;
}

std::string_view NameOf(ForegroundProfile profile) { return kProfiles.Of(profile); }

namespace {

std::optional<Foreground> ForegroundOf(const Json& sampling) {
  if (!sampling.contains("oversample_foreground")) return std::nullopt;
  Foreground foreground{.fraction = sampling["oversample_foreground"].get<double>()};
  const Json more = sampling.value("foreground", Json::object());
  foreground.by_component = more.value("by", "voxel") == "component";
  foreground.classes = more.value("classes", std::vector<std::string>());
  foreground.profile = *kProfiles.Find(more.value("profile", "independent"));
  return foreground;
}

void PutForeground(const Foreground& foreground, Json& sampling) {
  sampling["oversample_foreground"] = foreground.fraction;
  Json& more = sampling["foreground"];
  more = {{"by", foreground.by_component ? "component" : "voxel"},
          {"profile", NameOf(foreground.profile)}};
  if (!foreground.classes.empty()) more["classes"] = foreground.classes;
}

}  // namespace

void ReadSampling(const Json& sampling, RunConfig& config) {
  config.order = sampling["order"] == "shuffled" ? PatchOrder::kShuffled : PatchOrder::kSequential;
  config.positions = sampling["positions"] == kGrid ? Positions::kGrid : Positions::kRandom;
  if (IsListed(sampling)) {
    config.positions = Positions::kListed;
    config.positions_table = sampling["positions"].get<std::string>();
  }
  config.patches_per_image = sampling.value("patches_per_image", std::uint64_t{0});
  config.patches_per_epoch = sampling.value("patches_per_epoch", std::uint64_t{0});
  config.max_per_slide = sampling.value("max_per_slide", std::uint64_t{0});
  if (sampling.contains("stride")) config.stride = ExtentOf(sampling["stride"]);
  if (sampling.contains("overlap")) {
    const Extent shared = ExtentOf(sampling["overlap"]);
    const std::int64_t z = config.has_depth ? config.patch.z - shared.z : 1;
    config.stride = {z, config.patch.y - shared.y, config.patch.x - shared.x};
  }
  if (sampling.contains("tissue")) {
    config.tissue_fraction = sampling["tissue"]["min_fraction"].get<double>();
    config.tissue_set = sampling["tissue"]["set"].get<std::string>();
  }
  if (sampling.contains("class_weights")) {
    sampling["class_weights"].get_to(config.class_weights);
  }
  config.weight_by = sampling.value("weight_by", std::vector<std::string>());
  config.foreground = ForegroundOf(sampling);
}

Json SamplingToJson(const RunConfig& config) {
  Json sampling = {{"order", NameOf(config.order)},
                   {"positions", config.positions == Positions::kListed   ? config.positions_table
                                 : config.positions == Positions::kRandom ? kRandom
                                                                          : kGrid}};
  if (config.patches_per_image != 0) sampling["patches_per_image"] = config.patches_per_image;
  if (config.patches_per_epoch != 0) sampling["patches_per_epoch"] = config.patches_per_epoch;
  if (config.max_per_slide != 0) sampling["max_per_slide"] = config.max_per_slide;
  const Extent& stride = config.stride;
  if (!stride.Empty() && stride != config.patch) {
    sampling["stride"] =
        config.has_depth ? Json{stride.z, stride.y, stride.x} : Json{stride.y, stride.x};
  }
  if (config.tissue_fraction) {
    sampling["tissue"] = {{"min_fraction", *config.tissue_fraction}, {"set", config.tissue_set}};
  }
  if (!config.class_weights.empty()) sampling["class_weights"] = config.class_weights;
  if (!config.weight_by.empty()) sampling["weight_by"] = config.weight_by;
  if (config.foreground) PutForeground(*config.foreground, sampling);
  return sampling;
}

std::optional<SamplingFault> FindSamplingFault(const Json& config) {
  const Json &sampling = config["sampling"], &size = config["patch"]["size"];
  for (const char* key : {"stride", "overlap"}) {
    if (!sampling.contains(key)) continue;
    const Json& sides = sampling[key];
    if (sides.size() != size.size()) {
      return SamplingFault{StrCat("sampling.", key),
                           StrCat("expected ", size.size(), " values, as patch.size has")};
    }
    for (std::size_t i = 0; i < sides.size() && std::string_view(key) == "overlap"; ++i) {
      const auto side = sides[i].get<std::int64_t>();
      if (side < size[i].get<std::int64_t>()) continue;
      return SamplingFault{"sampling.overlap",
                           StrCat(side, " pixels: not less than the patch has")};
    }
  }
  if (IsListed(sampling) && size.size() == 3) {
    return SamplingFault{"sampling.positions",
                         "a table has places of slides; patch.size has three values"};
  }
  const Json label = config.value("labels", Json::object()).value("label", Json::object());
  if (label.contains("positions_column") && !IsListed(sampling)) {
    return SamplingFault{"labels.label.positions_column",
                         "sampling.positions is not a table (.csv, .tsv)"};
  }
  for (const char* key : {"class_weights", "oversample_foreground"}) {
    if (!sampling.contains(key) || config["labels"].contains("set")) continue;
    return SamplingFault{StrCat("sampling.", key), "there is no labels.set with its classes"};
  }
  const std::size_t images = std::max<std::size_t>(1, config["patch"]["mpp"].size());
  const Json labels = config.value("labels", Json::object());
  const std::size_t sets = labels.value("set", Json::array()).size();
  if (sets + images > kMaxMasksAndImages) {
    return SamplingFault{"labels.set",
                         StrCat(sets, " masks and ", images, " images: a batch has at most ",
                                kMaxMasksAndImages, " of both")};
  }
  if (sampling.contains("oversample_foreground") && size.size() != 3) {
    return SamplingFault{"sampling.oversample_foreground",
                         "for volumes: a patch.size of [z, y, x]; of slides: class_weights"};
  }
  return std::nullopt;
}

}  // namespace patchbay::plan

#include "runtime/plan/image_labels.h"

#include "runtime/base/strings.h"

namespace patchbay::plan {

Status SettleLabels(const RunConfig& config, std::vector<PlannedImage>& images) {
  if (!config.labels.set.empty() && config.has_depth) {
    return absl::UnimplementedError("plan: key 'labels.set': labels of volumes are not read yet");
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::optional<ImageLabels>& labels = images[i].labels;
    if (config.labels.set.empty()) {
      labels.reset();
      continue;
    }
    if (!labels) {
      return absl::InvalidArgumentError(
          StrCat("plan: image ", i, ": it has no label set '", config.labels.set, "'"));
    }
    if (labels->classes != images.front().labels->classes) {
      return absl::InvalidArgumentError(
          StrCat("plan: image ", i, ": its label set '", config.labels.set,
                 "' has other classes than image 0's; import both with one class table"));
    }
  }
  if (config.labels.set.empty()) return absl::OkStatus();
  return Annotate(CheckLabels(config.labels, images.front().labels->classes), "plan");
}

Json LabelsToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  if (config.labels.set.empty()) return nullptr;
  Json sets = Json::array();
  for (const PlannedImage& image : images) sets.push_back(image.labels->digest.Hex());
  return {{"classes", ToJson(images.front().labels->classes)}, {"sets", sets}};
}

Status LabelsFromJson(const RunConfig& config, const Json& value,
                      std::vector<PlannedImage>& images) {
  if (config.labels.set.empty()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const Json* classes, JsonMember(value, "classes", "plan: labels"));
  PB_ASSIGN_OR_RETURN(const Json* sets, JsonMember(value, "sets", "plan: labels"));
  PB_ASSIGN_OR_RETURN(const LabelClasses parsed, LabelClassesFromJson(*classes));
  if (!sets->is_array() || sets->size() != images.size()) {
    return absl::InvalidArgumentError("plan: labels: not one set an image");
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Json& hex = (*sets)[i];
    if (!hex.is_string()) return absl::InvalidArgumentError("plan: labels: no digest");
    ImageLabels labels;
    PB_ASSIGN_OR_RETURN(labels.digest, Digest::FromHex(hex.get_ref<const std::string&>()));
    labels.classes = parsed;
    images[i].labels = std::move(labels);
  }
  return absl::OkStatus();
}

std::vector<ArrayLayout> LabelArrays(const RunConfig& config) {
  std::vector<ArrayLayout> arrays;
  if (config.labels.mask) {
    ArrayLayout mask{"mask", DType::kUint8, {}, ArrayMemory::kStream};
    if (config.has_depth) mask.shape.push_back(config.patch.z);
    mask.shape.insert(mask.shape.end(), {config.patch.y, config.patch.x});
    arrays.push_back(std::move(mask));
  }
  if (config.labels.rule) arrays.push_back({"label", DType::kInt64, {}, ArrayMemory::kStream});
  return arrays;
}

}  // namespace patchbay::plan

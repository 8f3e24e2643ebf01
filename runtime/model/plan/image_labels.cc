#include "runtime/model/plan/image_labels.h"

#include "runtime/core/strings.h"
#include "runtime/model/plan/image_columns.h"
#include "runtime/model/plan/image_error.h"

namespace patchbay::plan {
namespace {

/// The label of each image's row, where there is a column of them.
Status SettleValues(const RunConfig& config, std::vector<PlannedImage>& images) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (config.labels.column.empty()) {
      images[i].label.reset();
    } else if (!images[i].label) {
      return ImageError(i, "key 'labels.label.column': no label; the dataset is not a table");
    }
  }
  return absl::OkStatus();
}

Status SetsFromJson(const Json& value, std::vector<PlannedImage>& images) {
  PB_ASSIGN_OR_RETURN(const Json* classes, JsonMember(value, "classes", "plan: labels"));
  PB_ASSIGN_OR_RETURN(const Json* listed, JsonMember(value, "sets", "plan: labels"));
  PB_ASSIGN_OR_RETURN(const auto parsed, FromJson<LabelClasses>(*classes, "plan: labels"));
  PB_ASSIGN_OR_RETURN(const auto sets, FromJson<std::vector<Digest>>(*listed, "plan: labels"));
  if (sets.size() != images.size()) {
    return absl::InvalidArgumentError("plan: labels: not one set an image");
  }
  for (std::size_t i = 0; i < images.size(); ++i) images[i].labels = {sets[i], parsed};
  return absl::OkStatus();
}

/// The classes that sampling draws are classes of the set.
Status CheckDrawn(const RunConfig& config, const LabelClasses& classes) {
  for (const auto& [name, weight] : config.class_weights) {
    PB_RETURN_IF_ERROR(CheckClass("sampling.class_weights", name, config.labels.set, classes));
  }
  if (!config.foreground) return absl::OkStatus();
  for (const std::string& name : config.foreground->classes) {
    PB_RETURN_IF_ERROR(CheckClass("sampling.foreground.classes", name, config.labels.set, classes));
  }
  return absl::OkStatus();
}

}  // namespace

Status SettleLabels(const RunConfig& config, std::vector<PlannedImage>& images) {
  PB_RETURN_IF_ERROR(SettleValues(config, images));
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::optional<ImageLabels>& labels = images[i].labels;
    if (config.labels.set.empty()) {
      labels.reset();
      continue;
    }
    if (!labels) {
      return ImageError(i, StrCat("it has no label set '", config.labels.set, "'"));
    }
    if (labels->classes != images.front().labels->classes) {
      return OtherThanFirst(i,
                            StrCat("its label set '", config.labels.set,
                                   "' has other classes than that of ", kOtherSubject),
                            "import both with one class table");
    }
  }
  if (config.labels.set.empty()) return absl::OkStatus();
  const LabelClasses& classes = images.front().labels->classes;
  PB_RETURN_IF_ERROR(Annotate(CheckDrawn(config, classes), "plan"));
  return Annotate(CheckLabels(config.labels, classes), "plan");
}

Json LabelsToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  Json value;
  if (!config.labels.set.empty()) {
    Json sets = Json::array();
    for (const PlannedImage& image : images) sets.push_back(JsonOf(image.labels->digest));
    value["classes"] = JsonOf(images.front().labels->classes);
    value["sets"] = std::move(sets);
  }
  if (!config.labels.column.empty()) value["values"] = ColumnOf(images, &PlannedImage::label);
  return value;
}

Status LabelsFromJson(const RunConfig& config, const Json& value,
                      std::vector<PlannedImage>& images) {
  if (!config.labels.set.empty()) PB_RETURN_IF_ERROR(SetsFromJson(value, images));
  if (config.labels.column.empty()) return absl::OkStatus();
  return ReadColumn(value, "values", &PlannedImage::label, images);
}

std::vector<ArrayLayout> LabelArrays(const RunConfig& config) {
  std::vector<ArrayLayout> arrays;
  if (config.labels.mask) {
    ArrayLayout mask{"mask", DType::kUint8, {}, ArrayMemory::kStream};
    if (config.has_depth) mask.shape.push_back(config.patch.z);
    mask.shape.insert(mask.shape.end(), {config.patch.y, config.patch.x});
    arrays.push_back(std::move(mask));
  }
  if (config.labels.rule || !config.labels.column.empty())
    arrays.push_back({"label", DType::kInt64, {}, ArrayMemory::kStream});
  return arrays;
}

}  // namespace patchbay::plan

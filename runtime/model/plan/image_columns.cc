#include "runtime/model/plan/image_columns.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/core/counted.h"
#include "runtime/core/fields.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/image_colours.h"
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

/// The class of each of an image's places, where the table of places has a column of them.
Status SettlePlaceLabels(const RunConfig& config, std::vector<PlannedImage>& images) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    PlannedImage& image = images[i];
    if (config.labels.positions_column.empty()) {
      image.listed_labels.values.clear();
    } else if (image.listed_labels.values.size() != image.listed.size()) {
      return ImageError(i, "key 'labels.label.positions_column': not one label for each position");
    }
  }
  return absl::OkStatus();
}

/// A further label set of a plan's text.
struct FurtherColumns {
  LabelClasses classes;
  std::vector<Digest> sets;  ///< one per image

  static constexpr auto Fields() {
    using T = FurtherColumns;
    return AsObject(Field("classes", &T::classes).Counted(0, kMaxClasses), Field("sets", &T::sets));
  }
};

/// "labels" of a plan's text.
struct LabelColumns {
  LabelClasses classes;
  std::vector<Digest> sets;  ///< one per image
  std::vector<FurtherColumns> further;
  std::vector<std::int64_t> values;  ///< one per image

  static constexpr auto Fields() {
    using T = LabelColumns;
    return AsObject(Field("classes", &T::classes).Counted(0, kMaxClasses), Field("sets", &T::sets),
                    Field("further", &T::further).Counted(0, kMaxLabelSets - 1),
                    Field("values", &T::values));
  }
};

/// The label set `set` of the config is `labels` of image `image`, which has the classes of the
/// first image's.
Status CheckSet(const std::string& set, const ImageLabels& labels, const ImageLabels& first,
                std::size_t image) {
  if (labels.classes == first.classes) return absl::OkStatus();
  return OtherThanFirst(
      image, StrCat("its label set '", set, "' has other classes than that of ", kOtherSubject),
      "import both with one class table");
}

/// Keeps the further sets of an image, or removes them.
Status SettleFurther(const RunConfig& config, std::size_t at, std::vector<PlannedImage>& images) {
  const std::vector<std::string>& sets = config.labels.further_sets;
  std::vector<ImageLabels>& found = images[at].further_labels;
  if (sets.empty()) found.clear();
  if (found.size() != sets.size()) {
    return ImageError(at, StrCat("it has no label set '", sets.at(found.size()), "'"));
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    PB_RETURN_IF_ERROR(CheckSet(sets[i], found[i], images.front().further_labels[i], at));
  }
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

template <typename Fit>
Json FitRow(const Fit& fit, const StainReferences& normalize, const PlannedImage& image) {
  Json row = ValuesOf(fit);
  if (normalize.IsByScanner()) row.push_back(image.stain_reference);
  if (fit.fallback != StainFallback::kNone) row.push_back(NameOf(fit.fallback));
  return row;
}

/// Takes the fallback's name off the end of a row.
StatusOr<StainFallback> TakeFallback(Json& row) {
  if (!row.is_array() || row.empty() || !row.back().is_string()) return StainFallback::kNone;
  const auto fallback = StainFallbackFromName(row.back().get_ref<const std::string&>());
  if (!fallback) return InvalidArgument("plan: stains: unknown fallback");
  row.erase(row.size() - 1);
  return *fallback;
}

/// Takes the number of the image's reference off the end of a row.
StatusOr<std::uint32_t> TakeReference(Json& row) {
  if (!row.is_array() || row.empty() || !row.back().is_number_unsigned() ||
      row.back().get<std::uint64_t>() >= kMaxScanners) {
    return InvalidArgument("plan: stains: no number of a reference");
  }
  const auto number = row.back().get<std::uint32_t>();
  row.erase(row.size() - 1);
  return number;
}

/// The row of an image that stays unnormalised.
Json SkippedRow(const StainReferences& normalize, const PlannedImage& image) {
  Json row = Json::array();
  if (normalize.IsByScanner()) row.push_back(image.stain_reference);
  return row;
}

Status ReadRow(const StainReferences& normalize, Json row, PlannedImage& image) {
  PB_ASSIGN_OR_RETURN(const StainFallback fallback, TakeFallback(row));
  if (normalize.IsByScanner()) {
    PB_ASSIGN_OR_RETURN(image.stain_reference, TakeReference(row));
  }
  if (normalize.misfit == StainMisfit::kSkip && row.is_array() && row.empty()) {
    return absl::OkStatus();
  }
  if (normalize.profile == StainProfile::kReinhard) {
    PB_ASSIGN_OR_RETURN(image.reinhard, ReinhardFromValues(row));
    image.reinhard->fallback = fallback;
  } else {
    PB_ASSIGN_OR_RETURN(image.macenko, MacenkoFromValues(row));
    image.macenko->fallback = fallback;
  }
  return absl::OkStatus();
}

constexpr std::uint64_t kMaxIndexedPixels = std::uint64_t{1} << 44;  ///< pixels of one image

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

Status SettleLabels(const RunConfig& config, std::vector<PlannedImage>& images) {
  PB_RETURN_IF_ERROR(SettleValues(config, images));
  PB_RETURN_IF_ERROR(SettlePlaceLabels(config, images));
  for (std::size_t i = 0; i < images.size(); ++i) {
    PB_RETURN_IF_ERROR(SettleFurther(config, i, images));
    std::optional<ImageLabels>& labels = images[i].labels;
    if (config.labels.set.empty()) {
      labels.reset();
      continue;
    }
    if (!labels) {
      return ImageError(i, StrCat("it has no label set '", config.labels.set, "'"));
    }
    PB_RETURN_IF_ERROR(CheckSet(config.labels.set, *labels, *images.front().labels, i));
  }
  if (config.labels.set.empty()) return absl::OkStatus();
  const LabelClasses& classes = images.front().labels->classes;
  PB_RETURN_IF_ERROR(Annotate(CheckDrawn(config, classes), "plan"));
  return Annotate(CheckLabels(config.labels, classes), "plan");
}

Json LabelsToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  LabelColumns columns;
  if (!config.labels.set.empty()) columns.classes = images.front().labels->classes;
  for (const PlannedImage& image : images) {
    if (!config.labels.set.empty()) columns.sets.push_back(image.labels->digest);
    if (!config.labels.column.empty()) columns.values.push_back(*image.label);
  }
  for (std::size_t set = 0; set < config.labels.further_sets.size(); ++set) {
    FurtherColumns& further = columns.further.emplace_back();
    further.classes = images.front().further_labels[set].classes;
    for (const PlannedImage& image : images) {
      further.sets.push_back(image.further_labels[set].digest);
    }
  }
  return JsonOf(columns);
}

Status LabelsFromJson(const RunConfig& config, const Json& value,
                      std::vector<PlannedImage>& images) {
  PB_ASSIGN_OR_RETURN(const auto columns, FromJson<LabelColumns>(value, "plan: labels"));
  const std::size_t sets = config.labels.set.empty() ? 0 : images.size();
  const std::size_t values = config.labels.column.empty() ? 0 : images.size();
  const auto is_short = [&](const FurtherColumns& one) { return one.sets.size() != sets; };
  if (columns.further.size() != config.labels.further_sets.size()) {
    return InvalidArgument("plan: labels: expected every further set of the config");
  }
  if (columns.sets.size() != sets || columns.values.size() != values ||
      std::any_of(columns.further.begin(), columns.further.end(), is_short)) {
    return InvalidArgument("plan: labels: expected one value per image");
  }
  for (std::size_t i = 0; i < sets; ++i) images[i].labels = {columns.sets[i], columns.classes};
  for (const FurtherColumns& one : columns.further) {
    for (std::size_t i = 0; i < sets; ++i) {
      images[i].further_labels.push_back({one.sets[i], one.classes});
    }
  }
  for (std::size_t i = 0; i < values; ++i) images[i].label = columns.values[i];
  return absl::OkStatus();
}

std::vector<ArrayLayout> LabelArrays(const RunConfig& config) {
  std::vector<ArrayLayout> arrays;
  const std::size_t masks = config.labels.mask ? 1 + config.labels.further_sets.size() : 0;
  for (std::size_t set = 0; set < masks; ++set) {
    ArrayLayout mask{MaskArrayOf(set), DType::kUint8, {}, ArrayMemory::kStream};
    if (config.has_depth) mask.shape.push_back(config.patch.z);
    mask.shape.insert(mask.shape.end(), {config.patch.y, config.patch.x});
    arrays.push_back(std::move(mask));
  }
  if (config.labels.HasLabel())
    arrays.push_back({"label", DType::kInt64, {}, ArrayMemory::kStream});
  return arrays;
}

Status SettleStains(const RunConfig& config, std::vector<PlannedImage>& images) {
  const auto normalize = FindStainReferences(config);
  if (normalize && !normalize->Unsettled().empty()) {
    return InvalidArgument("plan: stain_normalize: its reference is not decided");
  }
  const bool use_reinhard = normalize && normalize->profile == StainProfile::kReinhard;
  for (std::size_t i = 0; i < images.size(); ++i) {
    PlannedImage& image = images[i];
    if (!use_reinhard) image.reinhard.reset();
    if (use_reinhard || !normalize) image.macenko.reset();
    if (!normalize || !normalize->IsByScanner()) image.stain_reference = 0;
    if (!normalize) continue;
    if (image.stain_reference >= normalize->ReferenceCount()) {
      return ImageError(i, StrCat("stain_normalize has no reference ", image.stain_reference));
    }
    if (const std::string wrong = WrongColours(image); !wrong.empty()) {
      return ImageError(i, StrCat("stain_normalize: ", wrong));
    }
    const bool has_fit = use_reinhard ? image.reinhard.has_value() : image.macenko.has_value();
    if (!has_fit && normalize->misfit != StainMisfit::kSkip) {
      return ImageError(i, "it has no stain fit");
    }
  }
  return absl::OkStatus();
}

Json StainsToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  const auto normalize = FindStainReferences(config);
  if (!normalize) return nullptr;
  Json rows = Json::array();
  for (const PlannedImage& image : images) {
    if (image.reinhard) {
      rows.push_back(FitRow(*image.reinhard, *normalize, image));
    } else {
      rows.push_back(image.macenko ? FitRow(*image.macenko, *normalize, image)
                                   : SkippedRow(*normalize, image));
    }
  }
  return rows;
}

Status StainsFromJson(const RunConfig& config, const Json& rows,
                      std::vector<PlannedImage>& images) {
  const auto normalize = FindStainReferences(config);
  if (!normalize) return absl::OkStatus();
  PB_RETURN_IF_ERROR(CheckRowsOf("stains", rows, images));
  for (std::size_t i = 0; i < images.size(); ++i) {
    PB_RETURN_IF_ERROR(ReadRow(*normalize, rows[i], images[i]));
  }
  return absl::OkStatus();
}

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
    return InvalidArgument("key 'sampling.weight_by': the dataset is not a table");
  }
  const auto too_many = [](const PlaceCount& count) {
    return count.pixels_each == 0 || count.places > kMaxIndexedPixels / count.pixels_each;
  };
  if (std::any_of(image.places.begin(), image.places.end(), too_many)) {
    return InvalidArgument("more than ", kMaxIndexedPixels, " pixels of places");
  }
  const auto is_outside = [&](const PlanePoint& at) {
    return at.y < 0 || at.x < 0 || at.y >= image.size.y || at.x >= image.size.x;
  };
  if (config.positions != Positions::kListed && !image.listed.empty()) {
    return InvalidArgument("listed positions without key 'sampling.positions: listed'");
  }
  const std::ptrdiff_t outside =
      std::count_if(image.listed.begin(), image.listed.end(), is_outside);
  if (outside != 0) {
    return InvalidArgument(
        Counted(static_cast<std::uint64_t>(outside), "position lies", "positions lie"),
        " outside the image");
  }
  if (image.indexes.size() == indexes && image.places.size() == sets) return absl::OkStatus();
  return InvalidArgument("places do not match the keys of sampling");
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
  if (!config.labels.positions_column.empty()) {
    text["position_labels"] = ColumnOf(images, &PlannedImage::listed_labels);
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
  if (plan.contains("position_labels")) {
    PB_RETURN_IF_ERROR(ReadColumn(plan, "position_labels", &PlannedImage::listed_labels, images));
  }
  if (!plan.contains("positions")) return absl::OkStatus();
  return ReadColumn(plan, "positions", &PlannedImage::listed, images);
}

}  // namespace patchbay::plan

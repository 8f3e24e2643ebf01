#include "runtime/model/plan/image_stains.h"

#include <optional>
#include <string>

#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/image_colours.h"
#include "runtime/model/plan/image_error.h"

namespace patchbay::plan {
namespace {

template <typename Fit>
Json RowOf(const Fit& fit, const StainReferences& normalize, const PlannedImage& image) {
  Json row = ValuesOf(fit);
  if (normalize.IsByScanner()) row.push_back(image.stain_reference);
  if (fit.fallback != StainFallback::kNone) row.push_back(NameOf(fit.fallback));
  return row;
}

/// Takes the fallback's name off the end of a row.
StatusOr<StainFallback> TakeFallback(Json& row) {
  if (!row.is_array() || row.empty() || !row.back().is_string()) return StainFallback::kNone;
  const auto fallback = StainFallbackFromName(row.back().get_ref<const std::string&>());
  if (!fallback) return absl::InvalidArgumentError("plan: stains: unknown fallback");
  row.erase(row.size() - 1);
  return *fallback;
}

/// Takes the number of the image's reference off the end of a row.
StatusOr<std::uint32_t> TakeReference(Json& row) {
  if (!row.is_array() || row.empty() || !row.back().is_number_unsigned() ||
      row.back().get<std::uint64_t>() >= kMaxScanners) {
    return absl::InvalidArgumentError("plan: stains: no number of a reference");
  }
  const auto number = row.back().get<std::uint32_t>();
  row.erase(row.size() - 1);
  return number;
}

Status ReadRow(const StainReferences& normalize, Json row, PlannedImage& image) {
  PB_ASSIGN_OR_RETURN(const StainFallback fallback, TakeFallback(row));
  if (normalize.IsByScanner()) {
    PB_ASSIGN_OR_RETURN(image.stain_reference, TakeReference(row));
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

}  // namespace

Status SettleStains(const RunConfig& config, std::vector<PlannedImage>& images) {
  const auto normalize = FindStainReferences(config);
  if (normalize && !normalize->Unsettled().empty()) {
    return absl::InvalidArgumentError("plan: stain_normalize: its reference is not decided");
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
    if (use_reinhard ? !image.reinhard : !image.macenko) {
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
    rows.push_back(normalize->profile == StainProfile::kReinhard
                       ? RowOf(*image.reinhard, *normalize, image)
                       : RowOf(*image.macenko, *normalize, image));
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

}  // namespace patchbay::plan

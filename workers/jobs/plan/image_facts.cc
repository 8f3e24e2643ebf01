#include "workers/jobs/plan/image_facts.h"

#include <cmath>

#include "runtime/core/strings.h"
#include "runtime/model/plan/volume_spacing.h"
#include "workers/access/stamps.h"

namespace patchbay::workers {
namespace {

bool IsVolume(const ImageLayout& layout) { return layout.levels.front().size.z != 1; }

Status WrongCell(std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("the table's column 'mpp': ", cause));
}

Status CorrectMpp(double mpp, ImageLayout& layout, results::ImageFacts& facts) {
  const std::optional<double> stated = layout.spacing.MeanMpp();
  if (stated && std::abs(mpp - *stated) <= kSameMpp * *stated) return absl::OkStatus();
  if (IsVolume(layout)) {
    return WrongCell(StrCat(mpp, " um/px for a volume, whose spacing is its own; leave it empty"));
  }
  if (mpp < kMinTableMpp || mpp > kMaxTableMpp) {
    return WrongCell(StrCat(mpp, ": not in ", kMinTableMpp, "..", kMaxTableMpp,
                            " um per pixel (20x is about 0.5, 40x about 0.25)"));
  }
  facts.mpp_corrected = true;
  facts.stated_mpp = stated;
  const double factor = stated ? mpp / *stated : 1;
  layout.spacing = stated ? SpacingOfMpp(layout.spacing.y->Micrometres() * factor,
                                         layout.spacing.x->Micrometres() * factor)
                          : SpacingOfMpp(mpp, mpp);
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<std::optional<double>>> TableMppsOf(const Json& manifest, std::size_t count) {
  std::vector<std::optional<double>> mpps;
  const Json table = manifest.is_object() ? manifest.value("table", Json()) : Json();
  if (!table.is_object() || !table.contains("mpps")) return mpps;
  const Json& cells = table["mpps"];
  const auto wrong = [] {
    return absl::InvalidArgumentError("stream manifest: mpps: not one number or null an image");
  };
  if (!cells.is_array() || cells.size() != count) return wrong();
  for (const Json& cell : cells) {
    if (!cell.is_null() && !(cell.is_number() && cell.get<double>() > 0)) return wrong();
    mpps.emplace_back();
    if (!cell.is_null()) mpps.back() = cell.get<double>();
  }
  return mpps;
}

StatusOr<results::ImageFacts> SettleFacts(const Folders& allowed, const std::string& path,
                                          std::optional<double> table_mpp, ImageLayout& layout) {
  results::ImageFacts facts;
  for (const LevelLayout& level : layout.levels) {
    facts.levels.push_back(level.size);
    facts.downsamples.push_back(level.downsample);
  }
  if (table_mpp) PB_RETURN_IF_ERROR(CorrectMpp(*table_mpp, layout, facts));
  if (!IsVolume(layout)) {
    facts.mpp = layout.spacing.MeanMpp();
    return facts;
  }
  const Extent& finest = layout.levels.front().size;
  const auto mm = plan::SpacingOfLevel(layout.spacing, {finest, {1, 1, 1}});
  if (mm.ok()) facts.spacing_mm = {mm->z, mm->y, mm->x};
  facts.affine = results::AffineFromJson(RecordedAttribute(allowed, path, "affine_ras"));
  return facts;
}

}  // namespace patchbay::workers

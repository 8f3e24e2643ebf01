#include "workers/jobs/plan/image_facts.h"

#include <cmath>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
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

StatusOr<results::ImageFacts> SettleFacts(const Folders& allowed, const std::string& path,
                                          std::optional<double> table_mpp, ImageLayout& layout) {
  results::ImageFacts facts;
  std::vector<double> downsamples;
  for (const LevelLayout& level : layout.levels) {
    facts.levels.push_back(level.size);
    downsamples.push_back(level.downsample);
  }
  facts.SetDownsamples(std::move(downsamples));
  if (table_mpp) PB_RETURN_IF_ERROR(CorrectMpp(*table_mpp, layout, facts));
  if (!IsVolume(layout)) {
    facts.mpp = layout.spacing.MeanMpp();
    return facts;
  }
  const Extent& finest = layout.levels.front().size;
  const auto mm = plan::SpacingOfLevel(layout.spacing, {finest, {1, 1, 1}});
  if (mm.ok()) facts.spacing_mm = {mm->z, mm->y, mm->x};
  const auto affine =
      FromJson<results::Matrix4>(RecordedAttribute(allowed, path, "affine_ras"), "affine_ras");
  if (affine.ok()) facts.affine = *affine;
  return facts;
}

}  // namespace patchbay::workers

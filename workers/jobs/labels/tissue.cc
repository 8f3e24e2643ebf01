#include "workers/jobs/labels/tissue.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "workers/jobs/labels/label_raster.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::uint8_t kBackgroundValue = 0, kTissueValue = 1;

class TissueRaster final : public LabelRaster {
 public:
  TissueRaster(FoundTissue found, const Extent& finest, results::TissueReport report)
      : mask_(std::move(found.mask)),
        rows_(MaskPixels(finest.y, found.averaged.y, found.picture.factor)),
        columns_(MaskPixels(finest.x, found.averaged.x, found.picture.factor)) {
    report_.format = "tissue";
    report_.classes.resize(2);
    report_.tissue = std::move(report);
  }

  StatusOr<std::optional<std::uint8_t>> Chunk(const Point& chunk, std::uint8_t* out) override {
    const auto side = static_cast<std::size_t>(zarr::LabelSettings().chunk.x);
    const std::size_t top = static_cast<std::size_t>(chunk.y) * side;
    const std::size_t left = static_cast<std::size_t>(chunk.x) * side;
    const std::size_t bottom = std::min(top + side, rows_.size());
    const std::size_t right = std::min(left + side, columns_.size());
    if (IsOneValue(top, bottom, left, right)) return ValueAt(rows_[top], columns_[left]);
    for (std::size_t y = top; y < bottom; ++y) {
      std::uint8_t* row = out + (y - top) * side;
      if (y > top && rows_[y] == rows_[y - 1]) {
        std::memcpy(row, row - side, right - left);
        continue;
      }
      for (std::size_t x = left; x < right; ++x) *row++ = ValueAt(rows_[y], columns_[x]);
    }
    return std::optional<std::uint8_t>();
  }

 private:
  std::uint8_t ValueAt(std::int32_t row, std::int32_t column) const {
    const auto at = static_cast<std::size_t>(row * mask_.width + column);
    return mask_.pixels[at] != 0 ? kTissueValue : kBackgroundValue;
  }

  bool IsOneValue(std::size_t top, std::size_t bottom, std::size_t left, std::size_t right) const {
    const std::uint8_t first = ValueAt(rows_[top], columns_[left]);
    for (std::int32_t y = rows_[top]; y <= rows_[bottom - 1]; ++y) {
      for (std::int32_t x = columns_[left]; x <= columns_[right - 1]; ++x) {
        if (ValueAt(y, x) != first) return false;
      }
    }
    return true;
  }

  const ops::TissueMask mask_;
  const std::vector<std::int32_t> rows_, columns_;
};

Status CheckColours(const LabelledImage& image, const ImageLayout& layout) {
  if (IsRgb(layout)) return absl::OkStatus();
  return ErrorAbout(
      absl::StatusCode::kInvalidArgument, "label tissue", image.store,
      StrCat(Counted(static_cast<std::uint64_t>(layout.channels), "channel"), " of ",
             NameOf(layout.dtype), ": tissue is found by colour, in RGB slides only"));
}

}  // namespace

plan::ClassTable TissueClasses() {
  plan::ClassTable table;
  table.classes = {{"background", kBackgroundValue, {}, {}}, {"tissue", kTissueValue, {}, {}}};
  table.exhaustive = true;
  table.background = "background";
  return table;
}

StatusOr<std::unique_ptr<LabelRaster>> DrawTissue(TaskContext& context, const LabelledImage& image,
                                                  const TissueProfile& profile) {
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(context.allowed, image.store));
  const ImageLayout& layout = source->layout();
  PB_RETURN_IF_ERROR(CheckColours(image, layout));
  PB_ASSIGN_OR_RETURN(FoundTissue found,
                      FindTissue(context, *source, image.spacing.MeanMpp(), profile));
  results::TissueReport report{.profile = profile.name,
                               .options = ops::ToJson(found.options),
                               .level = found.picture.level,
                               .factor = found.picture.factor,
                               .mpp = found.mpp,
                               .areas = found.mpp.has_value(),
                               .verdict = std::string(ops::NameOf(found.mask.verdict)),
                               .threshold = found.mask.threshold,
                               .no_tissue = found.mask.tissue_pixels == 0};
  return std::make_unique<TissueRaster>(std::move(found), image.levels[0], std::move(report));
}

}  // namespace patchbay::workers

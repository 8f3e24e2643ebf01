#include "workers/jobs/labels/tissue.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/labels/label_raster.h"
#include "workers/jobs/task/tissue_picture.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::uint8_t kBackgroundValue = 0, kTissueValue = 1;

/// For each pixel of level 0 along one axis, the mask's pixel that its centre lies in.
std::vector<std::int32_t> MaskPixels(std::int64_t finest, std::int64_t averaged,
                                     std::int64_t factor) {
  std::vector<std::int32_t> pixels(static_cast<std::size_t>(finest));
  for (std::int64_t at = 0; at < finest; ++at) {
    const std::int64_t there = (2 * at + 1) * averaged / (2 * finest);
    pixels[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(there / factor);
  }
  return pixels;
}

class TissueRaster final : public LabelRaster {
 public:
  TissueRaster(ops::TissueMask mask, const TissuePicture& picture, const Extent& averaged,
               const Extent& finest, results::TissueReport report)
      : mask_(std::move(mask)),
        rows_(MaskPixels(finest.y, averaged.y, picture.factor)),
        columns_(MaskPixels(finest.x, averaged.x, picture.factor)) {
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
  if (layout.dtype == DType::kUint8 && layout.channels == 3) return absl::OkStatus();
  return ErrorAbout(
      absl::StatusCode::kInvalidArgument, "label tissue", image.store,
      StrCat(Counted(static_cast<std::uint64_t>(layout.channels), "channel"), " of ",
             NameOf(layout.dtype), ": tissue is found by colour, in RGB slides only"));
}

}  // namespace

StatusOr<TissueProfile> TissueProfileOf(std::string_view name) {
  TissueProfile profile{std::string(name), {}};
  ops::TissueMaskOptions& o = profile.options;
  o.pen = true;
  if (name == "clam") {
    o.channel = ops::TissueChannel::kSat;
    o.median_k = 11;
    o.fixed_threshold = 15;
    o.close_um = 32;
    o.min_area_um2 = o.max_hole_um2 = 16'384;
  } else if (name == "tiatoolbox") {
    o.channel = ops::TissueChannel::kGrey;
    o.median_k = 1;
    o.close_um = 32;
    o.min_area_um2 = 804;
  } else if (name == "histolab") {
    o.channel = ops::TissueChannel::kGrey;
    o.median_k = 1;
    o.close_um = 88;
    o.min_area_um2 = o.max_hole_um2 = 192'000;
  } else {
    return InvalidArgument("label tissue: profile '", name, "' is not allowed (",
                           StrJoin(TissueProfiles(), ", "), ")");
  }
  return profile;
}

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
  PB_ASSIGN_OR_RETURN(const TissuePicture picture, TissuePictureOf(context, *source));
  const LevelLayout& level = layout.levels[static_cast<std::size_t>(picture.level)];
  std::optional<double> mpp = image.spacing.MeanMpp();
  if (mpp) *mpp *= level.downsample * static_cast<double>(picture.factor);
  ops::TissueMaskOptions options = profile.options;
  if (!mpp) options.close_um = options.min_area_um2 = options.max_hole_um2 = 0;
  PB_ASSIGN_OR_RETURN(ops::TissueMask mask, ops::MakeTissueMask(picture.View(), mpp, options));
  results::TissueReport report{.profile = profile.name,
                               .options = ops::ToJson(options),
                               .level = picture.level,
                               .factor = picture.factor,
                               .mpp = mpp,
                               .areas = mpp.has_value(),
                               .verdict = std::string(ops::NameOf(mask.verdict)),
                               .threshold = mask.threshold,
                               .no_tissue = mask.tissue_pixels == 0};
  return std::make_unique<TissueRaster>(std::move(mask), picture, level.size, image.levels[0],
                                        std::move(report));
}

}  // namespace patchbay::workers

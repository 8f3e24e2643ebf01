#include "workers/jobs/task/tissue_profile.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/jobs/label_options.h"

namespace patchbay::workers {

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
  } else if (name == "ihc") {
    o.channel = ops::TissueChannel::kSat;
    o.median_k = 3;
    o.fixed_threshold = 10;
    o.close_um = 64;
    o.min_area_um2 = 4'096;
    o.max_hole_um2 = 16'384;
  } else {
    return InvalidArgument("label tissue: profile '", name, "' is not allowed (",
                           StrJoin(TissueProfiles(), ", "), ")");
  }
  return profile;
}

StatusOr<TissueProfile> WithOptions(TissueProfile profile, const TissueOptions& options) {
  ops::TissueMaskOptions& o = profile.options;
  if (options.channel == "saturation") o.channel = ops::TissueChannel::kSat;
  if (options.channel == "grey") o.channel = ops::TissueChannel::kGrey;
  if (const auto threshold = ThresholdOf(options.threshold)) {
    o.fixed_threshold = *threshold < 0 ? std::nullopt : threshold;
  }
  if (options.blur) o.median_k = static_cast<int>(*options.blur);
  if (options.closing) o.close_um = *options.closing;
  if (options.min_area) o.min_area_um2 = *options.min_area;
  if (options.max_hole) o.max_hole_um2 = *options.max_hole;
  if (!options.pen.empty()) o.pen = options.pen == "yes";
  if (options.black) o.black = static_cast<int>(*options.black);
  for (const auto& length : {options.closing, options.min_area, options.max_hole}) {
    profile.needs_mpp = profile.needs_mpp || length.value_or(0) > 0;
  }
  PB_RETURN_IF_ERROR(ops::Validate(o));
  return profile;
}

StatusOr<FoundTissue> FindTissue(TaskContext& context, const ImageSource& image,
                                 std::optional<double> mpp, const TissueProfile& profile) {
  if (!mpp && profile.needs_mpp) {
    return InvalidArgument(
        "label tissue: closing, min-area and max-hole are in um, and the image does not state its "
        "um per pixel");
  }
  FoundTissue found;
  PB_ASSIGN_OR_RETURN(found.picture, TissuePictureOf(context, image));
  const LevelLayout& level = image.layout().levels[static_cast<std::size_t>(found.picture.level)];
  found.averaged = level.size;
  found.options = profile.options;
  if (mpp) {
    found.mpp = *mpp * level.downsample * static_cast<double>(found.picture.factor);
  } else {
    found.options.close_um = found.options.min_area_um2 = found.options.max_hole_um2 = 0;
  }
  PB_ASSIGN_OR_RETURN(found.mask,
                      ops::MakeTissueMask(found.picture.View(), found.mpp, found.options));
  found.picture.pixels.clear();
  return found;
}

std::vector<std::int32_t> MaskPixels(std::int64_t side, std::int64_t averaged,
                                     std::int64_t factor) {
  std::vector<std::int32_t> pixels(static_cast<std::size_t>(side));
  for (std::int64_t at = 0; at < side; ++at) {
    const std::int64_t there = (2 * at + 1) * averaged / (2 * side);
    pixels[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(there / factor);
  }
  return pixels;
}

}  // namespace patchbay::workers

// Where a slide holds tissue, by one rule for slides and stores, for whoever draws or writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/tissue/tissue_mask.h"
#include "runtime/model/jobs/tissue_options.h"
#include "workers/jobs/task/task.h"
#include "workers/jobs/task/tissue_picture.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// How tissue is told from background, named after the program whose published settings it has, in
/// microns. `ihc` is Patchbay's: pale counterstain, and biopsies that are a hundredth of the slide.
struct TissueProfile {
  std::string name;
  ops::TissueMaskOptions options;
  bool needs_mpp = false;  ///< lengths or areas were asked for, so they are not left out
};

/// "clam", "tiatoolbox", "histolab" or "ihc".
StatusOr<TissueProfile> TissueProfileOf(std::string_view name);

/// The profile with the options that are set in place of its own.
StatusOr<TissueProfile> WithOptions(TissueProfile profile, const TissueOptions& options);

struct FoundTissue {
  TissuePicture picture;  ///< without its pixels
  Extent averaged;        ///< size of the level that was averaged
  std::optional<double> mpp;
  ops::TissueMaskOptions options;  ///< as they were applied: without lengths where there is no mpp
  ops::TissueMask mask;
};

/// The tissue of an RGB image of 8 bits, whose level 0 has `mpp`. Reads its pixels at once.
/// InvalidArgument where the profile needs an mpp and there is none.
StatusOr<FoundTissue> FindTissue(TaskContext& context, const ImageSource& image,
                                 std::optional<double> mpp, const TissueProfile& profile);

/// For each of `side` pixels along one axis of the whole image, the mask's pixel that its centre
/// lies in. `averaged`: the picture's level along that axis.
std::vector<std::int32_t> MaskPixels(std::int64_t side, std::int64_t averaged, std::int64_t factor);

}  // namespace patchbay::workers

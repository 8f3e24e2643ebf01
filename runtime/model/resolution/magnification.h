// patch.mpp: which level of an image patches are cut from, and how many of its pixels become one
// patch. Decided while planning.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/core/extent.h"
#include "runtime/core/spacing.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::plan {

/// Images of one patch: `image` and its contexts.
inline constexpr std::size_t kMaxMpps = 8;
/// Limits of the box that becomes one patch.
inline constexpr std::int64_t kMaxSourceSide = 65'535, kMaxSourcePixels = std::int64_t{1} << 26;

/// The magnification that a run config asks for.
struct Magnification {
  /// Micrometres per pixel of `image`, `image_1`, ...; empty: patch.level.
  std::vector<double> mpp;
  double tolerance = 0.05;  ///< share of mpp. Larger means fewer patches are resampled
  bool upsample = false;    ///< whether an mpp below the finest level's is made all the same
  Extent patch;             ///< pixels, as the trainer receives them

  bool operator==(const Magnification&) const = default;
};
Json ToJson(const Magnification& magnification);
/// InvalidArgument for anything but the output of ToJson.
StatusOr<Magnification> MagnificationFromJson(const Json& value);

/// How one of a patch's images is cut from an image of the dataset.
struct PlannedView {
  int level = 0;
  Extent size;    ///< size of the level
  Extent source;  ///< pixels of the level that become one patch; patch.size where none is resampled
  double downsample_y = 1, downsample_x = 1;  ///< downsample of the level against level 0
  double downsample_z = 1;

  bool operator==(const PlannedView&) const = default;
};

/// For each mpp: the level within the tolerance that is nearest; else the coarsest finer level,
/// whose pixels are averaged; else, with upsample, the finest. InvalidArgument naming the key for
/// an image whose spacing is unknown, an mpp that is too fine, or a source above the limits.
StatusOr<std::vector<PlannedView>> ChooseViews(const Magnification& magnification,
                                               std::span<const Extent> levels,
                                               const Spacing& spacing);

/// The box of another view, with the centre of `box`: to half a pixel of its level.
Box WithSameCentre(const Box& box, const PlannedView& from, const PlannedView& to);

/// [[level, y, x, source y, source x, downsample y, downsample x], ...]; of a volume every three
/// numbers, z first.
Json ToJson(const std::vector<PlannedView>& views);
/// InvalidArgument for anything but the output of ToJson.
StatusOr<std::vector<PlannedView>> ViewsFromJson(const Json& value);

}  // namespace patchbay::plan

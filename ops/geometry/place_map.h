// Linear maps of places between pixels, and the border rule. Bilinear; bits do not depend on the
// width of the processor's registers.
#pragma once

#include <cstdint>

#include "ops/geometry/sample_map.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_options.h"

namespace patchbay::ops {

/// A linear map of places: y = yy i + yx j + y0, x = xy i + xx j + x0.
struct PlaceMap {
  double yy = 1, yx = 0, y0 = 0;
  double xy = 0, xx = 1, x0 = 0;

  /// This map applied to the output of `inner`.
  PlaceMap After(const PlaceMap& inner) const;
  bool IsIdentity() const;
};

/// Pixels beyond the box that was read: the box mirrored about its outer pixels, mirrored about its
/// edges, or its outer pixels.
enum class Border : std::uint8_t { kReflect101, kReflect, kEdge };

/// "border", of ops that sample between pixels.
template <typename Options>
plan::Option<Options> BorderOption() {
  return plan::OptionOf(
      &Options::border,
      {.name = "border",
       .choices = {"reflect101", "reflect", "edge"},
       .help = "beyond the box that is read (the patch and crop.margin): mirrored about its "
               "outer pixels, about its edges, or its outer pixels repeated; 2-D images only"});
}
/// Refuses a border of a volume other than the default.
Status CheckVolumeBorder(Border border);

BorderFold FoldOf(Border border, std::int64_t pixels);

}  // namespace patchbay::ops

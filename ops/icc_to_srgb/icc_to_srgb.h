// icc_to_srgb: the colours of every image as sRGB, by the ICC profile of its scanner. The profile
// is read once, at ingest (of a slide that is streamed as it is, when it is opened), and becomes a
// lookup; a plan names the lookup by its digest.
#pragma once

#include <vector>

#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct IccToSrgbOptions {
  /// An image without a usable profile keeps its colours, and planning names it; otherwise it is an
  /// error of the run.
  bool keeps_missing = true;

  static constexpr plan::OpNumber kNumber{8};
  static std::vector<plan::Option<IccToSrgbOptions>> Table();
};

}  // namespace patchbay::ops

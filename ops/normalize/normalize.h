// normalize: (x / scale - mean) / std for each channel, computed in double and rounded once to
// float32.
#pragma once

#include <vector>

#include "ops/normalize/normalize_math.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/normalize.h"

namespace patchbay::ops {

/// The constants of each channel. InvalidArgument when a list has neither one value nor `channels`,
/// a std or the scale is not above 0, or a value is not finite.
StatusOr<std::vector<NormalizeChannel>> NormalizeChannels(const plan::NormalizeOptions& options,
                                                          int channels);

}  // namespace patchbay::ops

// normalize: (x / scale - mean) / std for each channel, computed in double and rounded once to
// float32.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/normalize/normalize_math.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct NormalizeOptions {
  double scale = 255.0;              ///< divisor of the input's range, applied first
  std::vector<double> mean = {0.0};  ///< after scaling; one for all channels, or one for each
  std::vector<double> std = {1.0};   ///< likewise; above 0

  /// InvalidArgument when a std or the scale is not above 0, or a value is not finite.
  Status Check() const;
  /// InvalidArgument when a list has neither one value nor `channels`.
  Status CheckChannels(std::size_t channels) const;

  static constexpr plan::OpNumber kNumber{4};
  static std::vector<plan::Option<NormalizeOptions>> Table();
};

/// The constants of each channel. InvalidArgument when a list has neither one value nor `channels`,
/// a std or the scale is not above 0, or a value is not finite.
StatusOr<std::vector<NormalizeChannel>> NormalizeChannels(const NormalizeOptions& options,
                                                          int channels);

}  // namespace patchbay::ops

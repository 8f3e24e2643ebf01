// normalize: (x / scale - mean) / std for each channel.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

inline constexpr std::size_t kMaxNormalizeValues = 64;  ///< kMaxChannels

struct NormalizeOptions {
  double scale = 255.0;              ///< divisor of the input's range, applied first
  std::vector<double> mean = {0.0};  ///< after scaling; one for all channels, or one for each
  std::vector<double> std = {1.0};   ///< likewise; above 0

  static config::Key Keys();
  /// From a value that passed Keys().
  static NormalizeOptions FromJson(const Json& options);
};

/// InvalidArgument when a std or the scale is not above 0, or a value is not finite.
Status CheckValues(const NormalizeOptions& options);
/// InvalidArgument when a list has neither one value nor `channels`.
Status CheckChannels(const NormalizeOptions& options, std::size_t channels);

}  // namespace patchbay::plan

#include "ops/normalize/normalize.h"

namespace patchbay::ops {

StatusOr<std::vector<NormalizeChannel>> NormalizeChannels(const plan::NormalizeOptions& options,
                                                          int channels) {
  const auto n = static_cast<std::size_t>(channels);
  PB_RETURN_IF_ERROR(plan::CheckChannels(options, n));
  PB_RETURN_IF_ERROR(plan::CheckValues(options));
  std::vector<NormalizeChannel> constants(n);
  for (std::size_t c = 0; c < n; ++c) {
    constants[c] = {options.scale, options.mean[options.mean.size() == 1 ? 0 : c],
                    options.std[options.std.size() == 1 ? 0 : c]};
  }
  return constants;
}

}  // namespace patchbay::ops

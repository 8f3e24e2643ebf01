// zscore: subtracts the mean of the image and divides by its deviation, both of the windowed values
// over the body of the whole volume, never of the patch.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct ZscoreOptions {
  enum class Over : std::uint8_t { kBody };
  Over over = Over::kBody;

  static constexpr plan::OpNumber kNumber{17};
  static std::vector<plan::Option<ZscoreOptions>> Table();
};

}  // namespace patchbay::ops

// window: maps a range of Hounsfield units to 0 to 1; values outside become 0 or 1.
#pragma once

#include <array>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

/// Hounsfield units; wide enough for every type of image.
inline constexpr double kMaxWindowBound = 1e6;

struct WindowOptions {
  std::array<double, 2> range = {0, 1};  ///< low < high

  Status Check() const;

  static constexpr plan::OpNumber kNumber{15};
  static std::vector<plan::Option<WindowOptions>> Table();
};

}  // namespace patchbay::ops

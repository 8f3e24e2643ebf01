// zscore: subtracts the mean of the image and divides by its deviation, both of the windowed values
// over the body, the voxels that are not 0, the mask or the whole of the volume, never of the
// patch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct ZscoreOptions {
  enum class Over : std::uint8_t { kBody, kNonzero, kImage, kMask };
  Over over = Over::kBody;
  std::string mask;  ///< a label set; empty but for kMask

  Status Check() const;

  static constexpr plan::OpNumber kNumber{17};
  static std::vector<plan::Option<ZscoreOptions>> Table();
};

}  // namespace patchbay::ops

// crop: takes a window out of a larger box. The box that is read is enlarged by the margins, so
// that the finished patch keeps its size. Exact.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

inline constexpr std::int64_t kMaxCropMargin = 4'096;

struct CropOptions {
  /// Pixels read beyond the patch on each side, y and x. Larger means patches move further from the
  /// grid.
  std::array<std::int64_t, 2> margin = {0, 0};
  bool random = true;  ///< anywhere within the margins, or the centre

  static constexpr plan::OpNumber kNumber{1};
  static std::vector<plan::Option<CropOptions>> Table();
};

/// Where the window's first pixel lies in the source.
struct CropParameters {
  std::int64_t y = 0, x = 0;
  bool operator==(const CropParameters&) const = default;
};

/// Uniform over the (2 margin_y + 1) x (2 margin_x + 1) places (words 0..1 of the key's first block
/// for y, 2..3 for x), or the centre.
CropParameters DrawCrop(const CropOptions& options, const DrawKey& key);

}  // namespace patchbay::ops

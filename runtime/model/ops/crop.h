// crop: takes a window out of a larger box. The box that is read is enlarged by the margins, so
// that the finished patch keeps its size.
#pragma once

#include <cstdint>

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

inline constexpr std::int64_t kMaxCropMargin = 4'096;

struct CropOptions {
  /// Pixels read beyond the patch on each side. Larger means patches move further from the grid.
  std::int64_t margin_y = 0, margin_x = 0;
  bool random = true;  ///< anywhere within the margins, or the centre

  static config::Key Keys();
  /// From a value that passed Keys().
  static CropOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan

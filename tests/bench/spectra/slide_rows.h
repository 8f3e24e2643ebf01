// Grey pixels of a slide's rows, by OpenSlide's regions or by our own reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/status.h"

namespace patchbay::bench {

/// Columns of one read of so many rows: a block of pixels that fits a core's cache.
inline std::int64_t BlockColumns(std::int64_t rows) {
  constexpr std::int64_t kBlockPixels = std::int64_t{1} << 19, kLeast = 256;
  return std::max(kLeast, kBlockPixels / rows);
}

/// One for each thread.
class SlideRows {
 public:
  static StatusOr<std::unique_ptr<SlideRows>> Open(const std::string& slide, bool own_reader);
  virtual ~SlideRows() = default;

  virtual std::int64_t width() const = 0;
  virtual std::int64_t height() const = 0;

  /// Rows [top, top + rows) of columns [left, left + columns) to `out`.
  virtual Status Read(std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns,
                      std::uint8_t* out, std::int64_t row_bytes) = 0;
};

}  // namespace patchbay::bench

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/hash.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/results/sheet_mark.h"
#include "runtime/os/file.h"
#include "workers/jobs/preview/cards.h"

namespace patchbay::workers {
namespace {

template <typename Value>
double Load(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return static_cast<double>(value);
}

double ValueAt(const ConstTensorView& view, std::int64_t y, std::int64_t x, std::int64_t c) {
  const std::byte* at =
      view.data + y * view.stride_bytes[0] + x * view.stride_bytes[1] + c * view.stride_bytes[2];
  switch (view.dtype) {
    case DType::kUint16:
      return Load<std::uint16_t>(at);
    case DType::kInt16:
      return Load<std::int16_t>(at);
    case DType::kFloat32:
      return Load<float>(at);
    default:
      return Load<std::uint8_t>(at);
  }
}

struct Range {
  double low = 0, high = 255;
};

Range RangeOf(const ConstTensorView& view) {
  if (view.dtype == DType::kUint8) return {};
  Range range{std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
  for (std::int64_t y = 0; y < view.shape[0]; ++y) {
    for (std::int64_t x = 0; x < view.shape[1]; ++x) {
      for (std::int64_t c = 0; c < view.shape[2]; ++c) {
        const double value = ValueAt(view, y, x, c);
        if (!std::isfinite(value)) continue;
        range.low = std::min(range.low, value);
        range.high = std::max(range.high, value);
      }
    }
  }
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

}  // namespace

Picture PictureOf(const ConstTensorView& view) {
  Picture picture{view.shape[0], view.shape[1], {}};
  picture.rgb.reserve(static_cast<std::size_t>(3 * view.shape[0] * view.shape[1]));
  const Range range = RangeOf(view);
  for (std::int64_t y = 0; y < view.shape[0]; ++y) {
    for (std::int64_t x = 0; x < view.shape[1]; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const double value = ValueAt(view, y, x, std::min(c, view.shape[2] - 1));
        const double grey = 255 * (value - range.low) / (range.high - range.low);
        picture.rgb.push_back(
            static_cast<std::uint8_t>(std::isfinite(grey) ? std::clamp(grey, 0.0, 255.0) : 0));
      }
    }
  }
  return picture;
}

Picture Overlaid(const Picture& picture, const std::vector<std::uint8_t>& mask) {
  constexpr int kOpacity = 110;  ///< in 255ths
  Picture overlaid = picture;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == plan::kIgnoreClass) continue;
    const Color color = ClassColor(mask[i]);
    const int over[] = {color.red, color.green, color.blue};
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint8_t& value = overlaid.rgb[3 * i + c];
      value = static_cast<std::uint8_t>((value * (255 - kOpacity) + over[c] * kOpacity) / 255);
    }
  }
  return overlaid;
}

StatusOr<std::uint64_t> WriteSheet(const Folders& allowed, const std::string& path, std::string png,
                                   const std::set<Digest>& images) {
  png = results::WithMark(std::move(png), images);
  PB_RETURN_IF_ERROR(WriteFileDurably(allowed, path, AsBytes(png), 0644));
  return png.size();
}

}  // namespace patchbay::workers

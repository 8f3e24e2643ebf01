#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

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

/// The values of one channel that become black and full colour: nearly the least and nearly the
/// largest, so that a few bright pixels do not darken the rest.
Range RangeOfChannel(const ConstTensorView& view, std::int64_t channel) {
  constexpr std::size_t kMaxSamples = std::size_t{1} << 18;
  const std::int64_t pixels = view.shape[0] * view.shape[1];
  const std::int64_t step = std::max<std::int64_t>(1, pixels / std::int64_t{kMaxSamples});
  std::vector<double> values;
  for (std::int64_t i = 0; i < pixels; i += step) {
    const double value = ValueAt(view, i / view.shape[1], i % view.shape[1], channel);
    if (std::isfinite(value)) values.push_back(value);
  }
  if (values.empty()) return {};
  const auto at = [&](double share) {
    const auto place = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + place, values.end());
    return values[static_cast<std::size_t>(place)];
  };
  Range range{at(0.01), at(0.997)};
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

/// Channels that are no colours, each in a colour of its own, added up.
Picture MixedPicture(const ConstTensorView& view) {
  constexpr std::array<Color, 7> kColors = {{{0, 0, 255},
                                             {0, 255, 0},
                                             {255, 0, 0},
                                             {255, 255, 0},
                                             {255, 0, 255},
                                             {0, 255, 255},
                                             {255, 255, 255}}};
  const auto pixels = static_cast<std::size_t>(view.shape[0] * view.shape[1]);
  std::vector<double> sums(3 * pixels);
  for (std::int64_t c = 0; c < view.shape[2]; ++c) {
    const Range range = RangeOfChannel(view, c);
    const Color& color = kColors[static_cast<std::size_t>(c) % kColors.size()];
    const double parts[] = {color.red / 255.0, color.green / 255.0, color.blue / 255.0};
    for (std::size_t i = 0; i < pixels; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double value = ValueAt(view, at / view.shape[1], at % view.shape[1], c);
      const double bright = std::clamp((value - range.low) / (range.high - range.low), 0.0, 1.0);
      if (!std::isfinite(bright)) continue;
      for (std::size_t k = 0; k < 3; ++k) sums[3 * i + k] += 255 * bright * parts[k];
    }
  }
  Picture picture{view.shape[0], view.shape[1], {}};
  for (const double sum : sums) {
    picture.rgb.push_back(static_cast<std::uint8_t>(std::min(sum, 255.0)));
  }
  return picture;
}

}  // namespace

Picture PictureOf(const ConstTensorView& view) {
  if (view.shape[2] != 1 && view.shape[2] != 3) return MixedPicture(view);
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

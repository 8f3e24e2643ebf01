// An image as plain numbers, and the ops on it as in their definitions; chains are compared with
// it. Shares no code with `ops` but the rounding of a number to a type, which has tests of its own.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/cast/cast.h"
#include "ops/normalize/normalize.h"

namespace patchbay::ops {

struct ReferenceImage {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<double> values =
      std::vector<double>(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
                          static_cast<std::size_t>(channels));

  double& At(std::int64_t y, std::int64_t x, std::int64_t c) {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
  double At(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
};

/// Every element of a height x width image of `like`'s channels, from `value(y, x, c)`.
template <typename Value>
ReferenceImage Filled(const ReferenceImage& like, std::int64_t height, std::int64_t width,
                      Value value) {
  ReferenceImage image{height, width, like.channels};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < like.channels; ++c) image.At(y, x, c) = value(y, x, c);
    }
  }
  return image;
}

inline ReferenceImage Mirrored(const ReferenceImage& in, bool horizontal, bool vertical) {
  return Filled(in, in.height, in.width, [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    return in.At(vertical ? in.height - 1 - y : y, horizontal ? in.width - 1 - x : x, c);
  });
}

/// Quarter turns against the clock, one at a time.
inline ReferenceImage Turned(ReferenceImage image, int turns) {
  for (int i = 0; i < turns; ++i) {
    const ReferenceImage in = image;
    image = Filled(in, in.width, in.height, [&](std::int64_t y, std::int64_t x, std::int64_t c) {
      return in.At(x, in.width - 1 - y, c);
    });
  }
  return image;
}

inline ReferenceImage Window(const ReferenceImage& in, std::int64_t top, std::int64_t left,
                             std::int64_t height, std::int64_t width) {
  return Filled(in, height, width, [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    return in.At(top + y, left + x, c);
  });
}

inline ReferenceImage Normalized(const ReferenceImage& in, const NormalizeOptions& options) {
  const auto of = [](const std::vector<double>& values, std::int64_t c) {
    return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(c)];
  };
  return Filled(in, in.height, in.width, [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    return (in.At(y, x, c) / options.scale - of(options.mean, c)) / of(options.std, c);
  });
}

inline ReferenceImage Rounded(const ReferenceImage& in, DType dtype) {
  const CastTo to = *CastTarget(dtype);
  return Filled(in, in.height, in.width, [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    return double{CastValue(CastBits(static_cast<float>(in.At(y, x, c)), to), to)};
  });
}

/// The bytes of a finished patch.
inline std::vector<std::byte> Finished(const ReferenceImage& image, DType dtype, bool planar) {
  const CastTo to = *CastTarget(dtype);
  const std::size_t element = SizeOf(dtype);
  std::vector<std::byte> bytes(image.values.size() * element);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const std::uint32_t bits = CastBits(static_cast<float>(image.At(y, x, c)), to);
        const std::int64_t at = planar ? (c * image.height + y) * image.width + x
                                       : (y * image.width + x) * image.channels + c;
        std::memcpy(&bytes[static_cast<std::size_t>(at) * element], &bits, element);
      }
    }
  }
  return bytes;
}

}  // namespace patchbay::ops

// The colours of a device as sRGB: a grid over its red, green and blue, made once from the ICC
// profile of an image and kept with it, so that no profile is read where patches are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/icc_to_srgb/icc_to_srgb_math.h"
#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::ops {

/// Nodes along each axis; node i stands for the device value i / (kIccGrid - 1).
inline constexpr int kIccGrid = 33;
inline constexpr std::size_t kIccNodes = std::size_t{kIccGrid} * kIccGrid * kIccGrid;
/// Steps of a stored value in one grey level of 255.
inline constexpr int kIccSteps = 32;

/// A value; 790 KB. Its values are not clipped to the gamut of sRGB: clipping after the
/// interpolation keeps colours near its edge correct.
class IccLookup {
 public:
  /// From sRGB grey levels (255 = full), node after node, blue fastest, red, green, blue of each.
  /// Rounded to steps, within 16 bits. InvalidArgument unless there are 3 * kIccNodes finite
  /// values.
  static StatusOr<IccLookup> FromLevels(const std::vector<double>& levels);
  /// The lookup in the form that stores carry: the object of ToJson. InvalidArgument for anything
  /// else.
  static StatusOr<IccLookup> FromJson(const Json& value);

  /// {"grid", "steps", "sha256", "values"}: 16-bit little-endian values in base64.
  Json ToJson() const;
  /// SHA-256 of the 16-bit values.
  const Digest& digest() const { return digest_; }

  /// sRGB levels: kIccNodes of them, blue fastest.
  std::span<const IccNode> nodes() const { return nodes_; }
  /// The step that refers to this lookup.
  IccStep step() const {
    return {{nodes_.data(), static_cast<int>(kIccNodes), &digest_}, kIccGrid};
  }
  /// `width` pixels of device levels (0 to 255), a row per channel, become sRGB levels within 0 to
  /// 255. Tetrahedral interpolation; the same bits on every CPU.
  void Apply(float* red, float* green, float* blue, std::int64_t width) const {
    ApplyToPixels(step(), red, green, blue, width);
  }

 private:
  IccLookup() = default;
  static StatusOr<IccLookup> FromBytes(std::string_view bytes);

  std::string bytes_;
  std::vector<IccNode> nodes_;
  Digest digest_;
};

}  // namespace patchbay::ops

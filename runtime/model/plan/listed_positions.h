// Places that a user's table lists, as a plan and its job carry them: about three bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::plan {

/// Most positions of all images of a run together.
inline constexpr std::size_t kMaxListedPositions = 10'000'000;

/// The first pixel of a patch.
struct PlanePoint {
  std::int32_t y = 0, x = 0;
  bool operator==(const PlanePoint&) const = default;
};

/// A class for each of a table's positions, in their order.
struct PlaceLabels {
  std::vector<std::int32_t> values;  ///< not negative
  bool operator==(const PlaceLabels&) const = default;
};
/// As varints, in base64.
std::string EncodePlaceLabels(const PlaceLabels& labels);
/// InvalidArgument for anything but the output of EncodePlaceLabels.
StatusOr<PlaceLabels> DecodePlaceLabels(std::string_view text);

/// Differences in units of their common divisor, as varints, in base64; in their order. Values are
/// not negative.
std::string EncodePositions(std::span<const PlanePoint> positions);
/// InvalidArgument for anything but the output of EncodePositions.
StatusOr<std::vector<PlanePoint>> DecodePositions(std::string_view text);

}  // namespace patchbay::plan

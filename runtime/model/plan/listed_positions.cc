#include "runtime/model/plan/listed_positions.h"

#include <limits>
#include <numeric>

#include "runtime/core/base64.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t UnZigZag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

/// Greatest common divisor of all differences along one axis; 1 where there are none.
std::int64_t StepOf(std::span<const PlanePoint> positions, std::int32_t PlanePoint::*axis) {
  std::int64_t step = 0;
  for (std::size_t i = 1; i < positions.size(); ++i) {
    step = std::gcd(step, std::int64_t{positions[i].*axis} - positions[i - 1].*axis);
  }
  return step == 0 ? 1 : step;
}

}  // namespace

std::string EncodePlaceLabels(const PlaceLabels& labels) {
  std::string bytes;
  for (const std::int32_t value : labels.values) {
    AppendVarint(bytes, static_cast<std::uint64_t>(value));
  }
  return Base64Of(bytes);
}

StatusOr<PlaceLabels> DecodePlaceLabels(std::string_view text) {
  PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(text));
  PlaceLabels labels;
  for (std::string_view left = bytes; !left.empty();) {
    std::uint64_t value = 0;
    if (!TakeVarint(left, kMost, value) || labels.values.size() == kMaxListedPositions) {
      return InvalidArgument("labels of positions: not in the written form");
    }
    labels.values.push_back(static_cast<std::int32_t>(value));
  }
  return labels;
}

std::string EncodePositions(std::span<const PlanePoint> positions) {
  std::string bytes;
  AppendVarint(bytes, positions.size());
  if (positions.empty()) return Base64Of(bytes);
  const std::int64_t step_y = StepOf(positions, &PlanePoint::y);
  const std::int64_t step_x = StepOf(positions, &PlanePoint::x);
  for (const std::int64_t value :
       {step_y, step_x, std::int64_t{positions[0].y}, std::int64_t{positions[0].x}}) {
    AppendVarint(bytes, static_cast<std::uint64_t>(value));
  }
  for (std::size_t i = 1; i < positions.size(); ++i) {
    const PlanePoint &now = positions[i], &before = positions[i - 1];
    AppendVarint(bytes, ZigZag((std::int64_t{now.y} - before.y) / step_y));
    AppendVarint(bytes, ZigZag((std::int64_t{now.x} - before.x) / step_x));
  }
  return Base64Of(bytes);
}

StatusOr<std::vector<PlanePoint>> DecodePositions(std::string_view text) {
  const auto wrong = []() -> StatusOr<std::vector<PlanePoint>> {
    return InvalidArgument("positions: not in the written form");
  };
  PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(text));
  std::string_view left = bytes;
  std::uint64_t count = 0, step_y = 0, step_x = 0, y = 0, x = 0;
  if (!TakeVarint(left, kMaxListedPositions, count)) return wrong();
  std::vector<PlanePoint> positions;
  if (count == 0 && left.empty()) return positions;
  // Each takes two bytes at least: a count that lies allocates nothing.
  if (count > left.size() / 2) return wrong();
  for (std::uint64_t* value : {&step_y, &step_x, &y, &x}) {
    if (!TakeVarint(left, kMost, *value)) return wrong();
  }
  positions.reserve(count);
  PlanePoint at{static_cast<std::int32_t>(y), static_cast<std::int32_t>(x)};
  positions.push_back(at);
  const auto move = [&left](std::uint64_t step, std::int32_t& axis) {
    std::uint64_t value = 0;
    if (!TakeVarint(left, 4 * static_cast<std::uint64_t>(kMost), value)) return false;
    const __int128 next = __int128{UnZigZag(value)} * step + axis;
    if (next < 0 || next > kMost) return false;
    axis = static_cast<std::int32_t>(next);
    return true;
  };
  while (positions.size() < count) {
    if (!move(step_y, at.y) || !move(step_x, at.x)) return wrong();
    positions.push_back(at);
  }
  if (!left.empty()) return wrong();
  return positions;
}

}  // namespace patchbay::plan

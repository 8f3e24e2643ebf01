#include "runtime/model/stream/unit_course.h"

#include <algorithm>

namespace patchbay {

Position BeginOf(const StreamGeometry& geometry, const AssignedUnit& unit) {
  return {unit.epoch, geometry.units.At(unit.unit).first_batch};
}

Position EndOf(const StreamGeometry& geometry, const AssignedUnit& unit) {
  return NextPosition(geometry, {unit.epoch, geometry.units.At(unit.unit).end_batch() - 1});
}

bool UnitCourse::Add(const StreamGeometry& geometry, const AssignedUnit& unit) {
  if (unit.unit >= geometry.units.units() || unit.epoch > kMaxEpoch) return false;
  if (newest_.has_value() && unit <= *newest_) return false;
  newest_ = unit;
  units_.push_back(unit);
  return true;
}

void UnitCourse::Remove(std::uint64_t unit) {
  std::erase_if(units_, [&](const AssignedUnit& one) { return one.unit == unit; });
}

std::optional<Position> UnitCourse::At(const StreamGeometry& geometry, Position from) const {
  for (const AssignedUnit& unit : units_) {
    if (from < EndOf(geometry, unit)) return std::max(from, BeginOf(geometry, unit));
  }
  return std::nullopt;
}

}  // namespace patchbay

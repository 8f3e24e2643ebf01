// The units that one consumer of a stream has, in the order in which it gets their batches. The
// scheduler and the consumer each keep one, and it only grows and shrinks at the same places.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/model/stream/position.h"

namespace patchbay {

/// A unit as it was given to a consumer. The positions of its batches there are under `epoch`,
/// which rises where a unit has a lower number than the one before: positions of a consumer rise.
struct AssignedUnit {
  std::uint32_t epoch = 0;
  std::uint64_t unit = 0;
  auto operator<=>(const AssignedUnit&) const = default;
};

/// Where the unit's batches begin, and the position behind its last one.
Position BeginOf(const StreamGeometry& geometry, const AssignedUnit& unit);
Position EndOf(const StreamGeometry& geometry, const AssignedUnit& unit);

class UnitCourse {
 public:
  /// False, and nothing changes, unless the stream has the unit and it comes after every one that
  /// was ever added: news of before is no news.
  bool Add(const StreamGeometry& geometry, const AssignedUnit& unit);
  /// The consumer is done with the unit.
  void Remove(std::uint64_t unit);

  /// The first batch at or after `from`; nullopt when no more are known to come.
  std::optional<Position> At(const StreamGeometry& geometry, Position from) const;
  /// Whether the batch is one of a unit here.
  bool Has(const StreamGeometry& geometry, Position at) const { return At(geometry, at) == at; }
  const std::vector<AssignedUnit>& units() const { return units_; }

 private:
  std::vector<AssignedUnit> units_;     ///< rising
  std::optional<AssignedUnit> newest_;  ///< ever added
};

}  // namespace patchbay

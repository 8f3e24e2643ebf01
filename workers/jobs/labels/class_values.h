// The values of classes while a set is made of a file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/class_table.h"

namespace patchbay::workers {

/// The class of pixels that nobody drew, and of voxels that no segment covers or that lie outside
/// the segmentation's grid: background where the table is exhaustive, otherwise ignored.
std::uint8_t UncoveredClass(const plan::ClassTable& table);

/// Maps all classes of value 255 to 255, the value of unlabelled pixels. Before that each has a
/// value of its own, so that its pixels can be counted.
class IgnoredClasses {
 public:
  explicit IgnoredClasses(const plan::ClassTable& table);

  /// The table with these separate values; its `from` has the same meaning as in the original.
  const plan::ClassTable& table() const { return table_; }
  bool any() const { return any_; }
  /// Puts 255 in place of such values, and counts them.
  void Resolve(std::span<std::uint8_t> values);
  /// Resolve for `count` pixels of one value.
  std::uint8_t Resolve(std::uint8_t value, std::uint64_t count);
  /// Pixels of a class of the table, resolved so far; nullopt for one of another value than 255.
  std::optional<std::uint64_t> CountOf(std::size_t index) const;

 private:
  plan::ClassTable table_;
  bool any_ = false;
  std::vector<bool> is_ignored_;             ///< indexed by class
  std::array<bool, 256> stands_in_{};        ///< indexed by value
  std::array<std::uint64_t, 256> counts_{};  ///< pixels by separate value
};

/// InvalidArgument with the values of a mask that mean nothing by the table, and how many `units`
/// ("pixels", "voxels") have them. `seen` and `known` are by value.
Status CheckMaskValues(const std::array<std::uint64_t, 256>& seen,
                       const std::vector<std::optional<int>>& known, std::string_view units);

}  // namespace patchbay::workers

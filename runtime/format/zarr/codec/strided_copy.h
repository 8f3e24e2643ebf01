// Copying a box of elements between a chunk's bytes and a strided view.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/core/tensor_view.h"

namespace patchbay::zarr {

/// A box of elements in two memories, axis by axis. Axis order is the source's storage order
/// (slowest first).
struct CopyPlan {
  int rank = 0;
  std::size_t element_bytes = 1;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> from_stride{};  ///< bytes
  std::array<std::int64_t, kMaxRank> to_stride{};    ///< bytes

  /// Merges neighbouring axes that both memories walk without a gap, and drops axes of extent 1.
  void Simplify();
  /// Whether both sides are one run of bytes (after Simplify).
  bool IsOneRun() const;
  std::int64_t Elements() const;
};

/// Walks all axes of a simplified plan but the last, calling `visit(from offset, to offset)` for
/// each line. The plan must have an axis or more.
template <typename Visit>
void ForEachLine(const CopyPlan& plan, const Visit& visit) {
  std::array<std::int64_t, kMaxRank> at{};
  std::int64_t from = 0, to = 0;
  const int outer = plan.rank - 1;
  while (true) {
    visit(from, to);
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      from += plan.from_stride[a];
      to += plan.to_stride[a];
      if (++at[a] < plan.shape[a]) break;
      from -= plan.from_stride[a] * plan.shape[a];
      to -= plan.to_stride[a] * plan.shape[a];
      at[a] = 0;
    }
    if (axis < 0) return;
  }
}

/// Runs a simplified plan. The memories must not overlap.
void CopyStrided(const CopyPlan& plan, const std::byte* from, std::byte* to);

/// Writes `element` (plan.element_bytes of it) to every place of the plan's `to` side.
void FillStrided(CopyPlan plan, const std::byte* element, std::byte* to);

}  // namespace patchbay::zarr

// Copying a box of elements between a chunk's bytes and a strided view.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/tensor_view.h"

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

/// Runs a simplified plan. The memories must not overlap.
void CopyStrided(const CopyPlan& plan, const std::byte* from, std::byte* to);

/// Writes `element` (plan.element_bytes of it) to every place of the plan's `to` side.
void FillStrided(CopyPlan plan, const std::byte* element, std::byte* to);

}  // namespace patchbay::zarr

// The rows of a patch, taken from the source: moved, mirrored or sampled between its pixels, by the
// geometry of an image or a volume. Shared by images and their labels; the scratch of a pass. A
// part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/chain/row_loops.h"
#include "ops/geometry/volume_moves.h"
#include "runtime/core/extent.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::ops {

inline std::int64_t RoundedUp(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Hands out pieces of one block of memory, which is made to fit before the first is used.
class Arena {
 public:
  explicit Arena(std::vector<std::byte>& memory) : memory_(memory) {}
  std::size_t Take(std::int64_t bytes) {
    const std::size_t at = size_;
    size_ += static_cast<std::size_t>(RoundedUp(bytes, 64));
    return at;
  }
  void Fit() {
    if (memory_.size() < size_ + 64) memory_.resize(size_ + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    base_ = memory_.data() + (64 - address % 64) % 64;
  }
  float* Floats(std::size_t at) const { return reinterpret_cast<float*>(base_ + at); }
  std::byte* Bytes(std::size_t at) const { return base_ + at; }

 private:
  std::vector<std::byte>& memory_;
  std::size_t size_ = 0;
  std::byte* base_ = nullptr;
};

/// Elements that a whole vector may reach past the end of a row.
inline constexpr std::int64_t kVectorSlack = 64;

/// The gather of one patch. Call Reserve, then Begin once the arena has room, then the rows: in
/// order, or for a volume in any order.
class RowGather {
 public:
  RowGather() = default;
  RowGather(const RowGather&) = delete;
  RowGather& operator=(const RowGather&) = delete;
  virtual ~RowGather() = default;

  virtual void Reserve(Arena& arena) = 0;
  virtual void Begin(const Arena& arena) = 0;
  /// Row y of slice z as floats.
  virtual void Values(std::int64_t z, std::int64_t y, const FloatRows& rows) = 0;
  /// The nearest pixels of a source of one channel of uint8, halves upwards.
  virtual void Nearest(std::int64_t z, std::int64_t y, std::uint8_t* out) = 0;
};

/// `source` is (z, y, x, channels), any strides; everything given outlives the gather.
std::unique_ptr<RowGather> GatherOf(const RowLoops& loops, const ConstTensorView& source,
                                    const PatchGeometry& geometry, const Extent& patch);
/// The gather of a volume.
std::unique_ptr<RowGather> GatherOf(const RowLoops& loops, const ConstTensorView& source,
                                    const VolumeGeometry& geometry, const Extent& patch);

}  // namespace patchbay::ops

// The draws of patches in the form of kernels: their parameters in one upload, their scratch, and
// the launches that make them. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/chain/chain.h"
#include "ops/chain/chain_kernel.h"
#include "ops/chain/device_arena.h"
#include "runtime/core/status.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

/// `size` as kernels take it.
inline DeviceExtent DeviceExtentOf(const Extent& size) { return {size.z, size.y, size.x}; }

/// One patch or its labels.
struct PatchItem {
  const std::byte* d_source = nullptr;  ///< contiguous, of Chain::SourceExtent
  std::byte* d_out = nullptr;
  PatchDraw draw;
};

/// Values that kernels read, in one upload: each knows its place on the GPU at once.
class DeviceParameters {
 public:
  static constexpr std::size_t kAlign = 16;

  DeviceParameters(DeviceArena& arena, memory::GpuStream stream)
      : arena_(arena), stream_(stream), d_base_(arena.d_next()) {}

  template <typename T>
  T* Add(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T> && kAlign % alignof(T) == 0);
    bytes_.resize((bytes_.size() + kAlign - 1) / kAlign * kAlign);
    const std::size_t at = bytes_.size();
    const auto from = std::as_bytes(values);
    bytes_.insert(bytes_.end(), from.begin(), from.end());
    return reinterpret_cast<T*>(d_base_ + at);
  }
  /// Values that patches share: values at one address are uploaded once.
  template <typename T>
  const T* AddShared(const StepValues<T>& values) {
    const std::byte*& d_at = shared_[values.at];
    if (d_at == nullptr) d_at = reinterpret_cast<const std::byte*>(AddValues(values));
    return reinterpret_cast<const T*>(d_at);
  }
  /// Steps whose own values are on the GPU too.
  StatusOr<AnyPointStep> OnDevice(const AnyPointStep& step);
  Status Upload();

 private:
  template <typename T>
  T* AddValues(const StepValues<T>& values) {
    return Add(std::span(values.at, static_cast<std::size_t>(values.count)));
  }

  DeviceArena& arena_;
  memory::GpuStream stream_;
  std::byte* const d_base_;
  std::vector<std::byte> bytes_;
  std::map<const void*, const std::byte*> shared_;
};

/// The most that one patch needs of an arena's parameters; labels need no more.
std::size_t ParameterBytes(const Chain& chain);
/// Bytes of the parameters that patches share.
std::size_t SharedParameterBytes(const Chain& chain);

/// Scratch of `patches` patches in an arena, at most kPlaneBytesMax unless one patch needs more.
/// Sources that may be smoothed are assumed to have eight times the voxels of their patch; the
/// arena grows at the launch of larger ones.
std::uint64_t ScratchBytes(const Chain& chain, std::size_t patches);

/// Queues all work that makes `patches`. One launch takes as many as its scratch has room for, at
/// most kLaunchSlices.
Status LaunchPatches(const Chain& chain, std::span<const PatchItem> patches, DeviceArena& arena,
                     memory::GpuStream stream);
/// Applies the geometry to labels of uint8.
Status LaunchPatchLabels(const Chain& chain, std::span<const PatchItem> labels, DeviceArena& arena,
                         memory::GpuStream stream);

}  // namespace patchbay::ops

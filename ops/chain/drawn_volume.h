// What the patches of a chain of volumes draw, as kernels take it. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "ops/chain/chain.h"
#include "ops/chain/device_arena.h"
#include "ops/chain/volume_kernel.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/memory/gpu.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

/// `size` as kernels take it.
inline DeviceExtent DeviceExtentOf(const Extent& size) { return {size.z, size.y, size.x}; }

/// One patch or its labels.
struct VolumeItem {
  const std::byte* d_source = nullptr;  ///< contiguous (z, y, x) of Chain::SourceExtent
  std::byte* d_out = nullptr;
  DrawKey key;
  plan::VolumeFacts facts;
};

/// Lists that patches refer to, in one upload: places in it until it is on the GPU.
class DeviceLists {
 public:
  static constexpr std::size_t kAlign = 16;

  template <typename T>
  std::size_t Add(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T> && kAlign % alignof(T) == 0);
    bytes_.resize((bytes_.size() + kAlign - 1) / kAlign * kAlign);
    const std::size_t at = bytes_.size();
    const auto from = std::as_bytes(values);
    bytes_.insert(bytes_.end(), from.begin(), from.end());
    return at + 1;
  }
  /// `place`, as Add gave it, on the GPU; null for 0.
  template <typename T>
  const T* At(std::size_t place) const {
    return place == 0 ? nullptr : reinterpret_cast<const T*>(d_bytes_ + place - 1);
  }
  Status Upload(DeviceArena& arena, memory::GpuStream stream) {
    if (bytes_.empty()) return absl::OkStatus();
    PB_ASSIGN_OR_RETURN(d_bytes_, arena.Upload(bytes_, stream));
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte> bytes_;
  const std::byte* d_bytes_ = nullptr;
};

/// A patch with its lists as places.
struct DrawnVolume {
  DeviceVolume volume;
  std::size_t moves = 0, smooth[3] = {}, blur = 0, taps = 0, gammas = 0;
  bool smooths = false, in_planes = false;
};

/// What a patch draws; its lists are added to `lists`.
DrawnVolume DrawVolume(const Chain& chain, const VolumeItem& item, DeviceLists& lists);
/// The same of its labels: where voxels go, without smoothing.
DrawnVolume DrawVolumeLabels(const Chain& chain, const VolumeItem& item, DeviceLists& lists);
/// Once the lists are uploaded.
void Refer(const DeviceLists& lists, DrawnVolume& drawn);

/// The most that one patch needs of an arena's parameters; labels need no more.
std::size_t VolumeParameterBytes(const Chain& chain);

}  // namespace patchbay::ops

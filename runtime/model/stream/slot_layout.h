// Offsets of a batch's bytes in a slot. They follow from the arrays of a batch and the most patches
// that a slot holds, and are constant for the life of a stream, so pointers never move.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/stream/batch_layout.h"

namespace patchbay {

inline constexpr std::uint64_t kArrayAlignment = 256;   ///< alignment of an array within its block
inline constexpr std::uint64_t kBlockAlignment = 4096;  ///< alignment of a slot's block: a page

/// Bytes of one array in a block.
struct ByteRange {
  std::uint64_t offset_bytes = 0;  ///< from the slot's begin
  std::uint64_t size_bytes = 0;
  bool operator==(const ByteRange&) const = default;
};

/// A slot of a host stream is a block of host memory. A slot of a device stream is a block on the
/// device and, in host memory, a block of the same layout for staging and behind it, on a page, the
/// block of the arrays that always lie in host memory. Within a block, an array starts at the sum
/// over the block's earlier arrays of their bytes for `capacity` patches, rounded up to
/// kArrayAlignment.
class SlotLayout {
 public:
  /// InvalidArgument for a layout CheckLayout refuses, no capacity, and a slot above kMaxSlotBytes.
  static StatusOr<SlotLayout> Of(const BatchLayout& layout, std::uint32_t capacity,
                                 bool device_stream);
  SlotLayout() = default;

  std::size_t arrays() const { return arrays_.size(); }
  std::uint32_t capacity() const { return capacity_; }
  /// Slot i begins at i * host_stride() of the ring's host memory, on pages.
  std::uint64_t host_stride() const { return host_stride_; }
  /// The stride of the slots' device memory; 0 for a host stream.
  std::uint64_t device_stride() const { return device_stride_; }
  bool OnDevice(std::size_t array) const { return arrays_[array].on_device; }

  /// Patches [place, place + count) of an array in the slot's host memory (staging, for an array on
  /// the device). They must be within the capacity.
  ByteRange InHost(std::size_t array, std::uint32_t place, std::uint32_t count) const;
  /// The same in the slot's device memory, for an array that lies there.
  ByteRange InDevice(std::size_t array, std::uint32_t place, std::uint32_t count) const;
  /// Whether a run of patches lies within the capacity.
  bool Holds(std::uint32_t place, std::uint32_t count) const {
    return count <= capacity_ && place <= capacity_ - count;
  }
  std::uint64_t PatchBytes(std::size_t array) const { return arrays_[array].patch_bytes; }
  /// Bytes of `count` patches, all arrays together.
  std::uint64_t BytesOf(std::uint32_t count) const;

 private:
  struct Array {
    std::uint64_t patch_bytes = 0, host_offset = 0, device_offset = 0;
    bool on_device = false;
  };
  std::vector<Array> arrays_;
  std::uint32_t capacity_ = 0;
  std::uint64_t host_stride_ = 0, device_stride_ = 0;
};

}  // namespace patchbay

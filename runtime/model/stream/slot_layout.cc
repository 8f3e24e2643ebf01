#include "runtime/model/stream/slot_layout.h"

#include "runtime/core/strings.h"
#include "runtime/model/stream/limits.h"

namespace patchbay {
namespace {

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

StatusOr<SlotLayout> SlotLayout::Of(const BatchLayout& layout, std::uint32_t capacity,
                                    bool device_stream) {
  PB_RETURN_IF_ERROR(CheckLayout(layout));
  if (capacity == 0) return InvalidArgument("lay out slot: it holds no patch");
  if (layout.PatchBytes() > kMaxSlotBytes / capacity) {
    return InvalidArgument("lay out slot: ", capacity, " patches of ",
                           HumanBytes(layout.PatchBytes()), ": more than ",
                           HumanBytes(kMaxSlotBytes));
  }
  SlotLayout slot;
  slot.capacity_ = capacity;
  std::uint64_t device_bytes = 0, host_bytes = 0;
  for (const ArrayLayout& array : layout.arrays) {
    Array made;
    made.patch_bytes = array.PatchBytes();
    made.on_device = device_stream && array.memory == ArrayMemory::kStream;
    std::uint64_t& block = made.on_device ? device_bytes : host_bytes;
    (made.on_device ? made.device_offset : made.host_offset) = block;
    block += RoundUp(capacity * made.patch_bytes, kArrayAlignment);
    slot.arrays_.push_back(made);
  }
  slot.device_stride_ = RoundUp(device_bytes, kBlockAlignment);
  slot.host_stride_ = slot.device_stride_ + RoundUp(host_bytes, kBlockAlignment);
  for (Array& array : slot.arrays_) {
    array.host_offset =
        array.on_device ? array.device_offset : slot.device_stride_ + array.host_offset;
  }
  return slot;
}

ByteRange SlotLayout::InHost(std::size_t array, std::uint32_t place, std::uint32_t count) const {
  const Array& a = arrays_[array];
  return {a.host_offset + place * a.patch_bytes, count * a.patch_bytes};
}

ByteRange SlotLayout::InDevice(std::size_t array, std::uint32_t place, std::uint32_t count) const {
  const Array& a = arrays_[array];
  return {a.device_offset + place * a.patch_bytes, count * a.patch_bytes};
}

std::uint64_t SlotLayout::BytesOf(std::uint32_t count) const {
  std::uint64_t bytes = 0;
  for (const Array& array : arrays_) bytes += count * array.patch_bytes;
  return bytes;
}

}  // namespace patchbay

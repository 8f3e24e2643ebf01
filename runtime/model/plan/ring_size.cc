#include "runtime/model/plan/ring_size.h"

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

std::uint64_t BytesOf(std::uint64_t slot_bytes, std::uint32_t slots) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(slot_bytes, slots, &bytes) ? UINT64_MAX : bytes;
}

}  // namespace

Status CheckRingFits(const RingSize& ring, const MemoryBudget& room) {
  const std::uint64_t bytes = BytesOf(ring.slot_bytes, ring.slots);
  if (CheckMemoryFits("", bytes, room).ok()) return absl::OkStatus();
  const std::uint32_t fewest = ring.slots - (ring.prefetch > 1 ? ring.prefetch - 1 : 0);
  const bool is_prefetch = CheckMemoryFits("", BytesOf(ring.slot_bytes, fewest), room).ok();
  return InvalidArgument("plan stream: key '", is_prefetch ? "batch.prefetch" : "batch.global_size",
                         "': a ring of ", ring.slots, " slots of ", HumanBytes(ring.slot_bytes),
                         " takes ", HumanBytes(bytes), ", and ", HumanBytes(room.bytes),
                         " are available (", room.limit, "), of which ", kMemoryUsePercent,
                         " % may be taken");
}

}  // namespace patchbay::plan

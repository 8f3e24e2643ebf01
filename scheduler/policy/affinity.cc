#include "scheduler/policy/affinity.h"

#include <algorithm>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

std::size_t ChooseByAffinity(std::span<const Affinity> head, std::uint32_t times_skipped) {
  if (head.empty() || times_skipped >= kMaxSkips) return 0;
  return static_cast<std::size_t>(std::max_element(head.begin(), head.end()) - head.begin());
}

bool StaysEven(std::uint32_t load, std::span<const std::uint32_t> smaller, std::size_t waiting) {
  std::uint64_t missing = 0;
  for (const std::uint32_t other : smaller) missing += other < load ? load - other : 0;
  return missing < waiting;
}

}  // namespace patchbay::scheduler

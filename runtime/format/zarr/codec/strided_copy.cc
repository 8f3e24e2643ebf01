#include "runtime/format/zarr/codec/strided_copy.h"

#include <cstring>

namespace patchbay::zarr {
namespace {

/// One line of elements of a fixed size.
template <typename T>
void CopyLine(std::int64_t n, const std::byte* from, std::int64_t from_stride, std::byte* to,
              std::int64_t to_stride) {
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}

using Line = void (*)(std::int64_t, const std::byte*, std::int64_t, std::byte*, std::int64_t);

Line LineOf(std::size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return CopyLine<std::uint8_t>;
    case 2:
      return CopyLine<std::uint16_t>;
    case 4:
      return CopyLine<std::uint32_t>;
    default:
      return CopyLine<std::uint64_t>;
  }
}

}  // namespace

void CopyPlan::Simplify() {
  int kept = 0;
  for (int i = 0; i < rank; ++i) {
    const auto a = static_cast<std::size_t>(i);
    if (shape[a] == 1) continue;
    const auto last = static_cast<std::size_t>(kept > 0 ? kept - 1 : 0);
    const bool joins = kept > 0 && from_stride[last] == from_stride[a] * shape[a] &&
                       to_stride[last] == to_stride[a] * shape[a];
    const auto target = joins ? last : static_cast<std::size_t>(kept++);
    shape[target] = joins ? shape[target] * shape[a] : shape[a];
    from_stride[target] = from_stride[a];
    to_stride[target] = to_stride[a];
  }
  rank = kept;
}

bool CopyPlan::IsOneRun() const {
  const auto size = static_cast<std::int64_t>(element_bytes);
  return rank == 0 || (rank == 1 && from_stride[0] == size && to_stride[0] == size);
}

std::int64_t CopyPlan::Elements() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
  return n;
}

void CopyStrided(const CopyPlan& plan, const std::byte* from, std::byte* to) {
  if (plan.rank == 0) {
    std::memcpy(to, from, plan.element_bytes);
    return;
  }
  const auto last = static_cast<std::size_t>(plan.rank - 1);
  const auto size = static_cast<std::int64_t>(plan.element_bytes);
  const std::int64_t n = plan.shape[last];
  if (plan.from_stride[last] == size && plan.to_stride[last] == size) {
    const auto bytes = static_cast<std::size_t>(n * size);
    ForEachLine(plan,
                [&](std::int64_t f, std::int64_t t) { std::memcpy(to + t, from + f, bytes); });
    return;
  }
  const Line line = LineOf(plan.element_bytes);
  ForEachLine(plan, [&](std::int64_t f, std::int64_t t) {
    line(n, from + f, plan.from_stride[last], to + t, plan.to_stride[last]);
  });
}

void FillStrided(CopyPlan plan, const std::byte* element, std::byte* to) {
  plan.from_stride.fill(0);
  for (int i = 0; i < plan.rank; ++i) {
    // Axes that join on the destination side may join: the source does not move.
    const auto a = static_cast<std::size_t>(i);
    plan.from_stride[a] = plan.to_stride[a];
  }
  plan.Simplify();
  plan.from_stride.fill(0);
  bool uniform = true;
  for (std::size_t i = 1; i < plan.element_bytes; ++i) uniform &= element[i] == element[0];
  const auto size = static_cast<std::int64_t>(plan.element_bytes);
  if (plan.rank > 0 && uniform && plan.to_stride[static_cast<std::size_t>(plan.rank - 1)] == size) {
    const auto bytes =
        static_cast<std::size_t>(plan.shape[static_cast<std::size_t>(plan.rank - 1)] * size);
    ForEachLine(plan, [&](std::int64_t, std::int64_t t) {
      std::memset(to + t, static_cast<int>(element[0]), bytes);
    });
    return;
  }
  CopyStrided(plan, element, to);
}

}  // namespace patchbay::zarr

// Affinity of tasks to workers: the worker that has the image open, then the node that has it in
// its page cache. A preference only: it never keeps a worker without work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::scheduler {

/// Where the group of a task ran last, as seen by a worker that looks for work. Larger suits
/// better.
enum class Affinity : std::uint8_t {
  kElsewhere,  ///< on another node
  kNode,       ///< on the worker's node, at another worker that may ask for it again
  kNowhere,    ///< it has not run yet
  kWorker,     ///< on the worker itself
};

/// The index in the head of a queue of the task that a worker takes: the first one with the best
/// affinity. 0 for an empty head, and once the first task was skipped kMaxSkips times.
std::size_t ChooseByAffinity(std::span<const Affinity> head, std::uint32_t times_skipped);

/// Whether a worker that holds `load` shards may take one more of `waiting` although others hold
/// fewer: true if the remaining ones suffice to raise every other worker to the same load.
/// `smaller`: the loads of the others, in any order.
bool StaysEven(std::uint32_t load, std::span<const std::uint32_t> smaller, std::size_t waiting);

}  // namespace patchbay::scheduler

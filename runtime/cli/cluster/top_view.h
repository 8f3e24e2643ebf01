// A cluster on one screen: is it working, who waits, what failed, how full is it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

/// In characters; 0 rows: as many as there are.
struct ScreenSize {
  std::size_t columns = 80, rows = 0;
};

/// The lines of the screen, none wider than it: totals, then streams with the most stalled first,
/// jobs that run before those that wait, nodes that are not up before others, and failures. Each
/// part keeps a share of the rows. `now`: seconds since 1970.
std::vector<std::string> TopLines(const protocol::ClusterDescribed& cluster, ScreenSize size,
                                  std::int64_t now);

}  // namespace patchbay::cli

// The metrics as Prometheus reads them. configs/metrics.md has the table of exposition.cc.
#pragma once

#include <cstddef>
#include <string>

#include "scheduler/metrics/sample.h"

namespace patchbay::scheduler {

/// A scrape has at most so many series: jobs beyond kMostJobs, streams beyond kMostStreams and
/// teams beyond kMostTeams are summed up under one label.
inline constexpr std::size_t kMostSeries = 20'000;
inline constexpr std::size_t kMostJobs = 1'000, kMostStreams = 256, kMostTeams = 100;

/// Prometheus's text format. Slow next to a turn of the core: for a thread of its own.
std::string Render(const Sample& sample);

}  // namespace patchbay::scheduler

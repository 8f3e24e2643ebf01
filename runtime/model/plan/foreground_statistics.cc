#include "runtime/model/plan/foreground_statistics.h"

#include <cmath>
#include <utility>
#include <vector>

namespace patchbay::plan {
namespace {

constexpr double kLowerPart = 0.005, kUpperPart = 0.995;

/// Rising values and how many voxels have each.
using Counted = std::vector<std::pair<double, std::uint64_t>>;

/// The value of that rank, counted from 0, among all voxels in rising order.
double ValueAt(const Counted& counted, std::uint64_t rank) {
  for (const auto& [value, count] : counted) {
    if (rank < count) return value;
    rank -= count;
  }
  return counted.back().first;
}

double Percentile(const Counted& counted, std::uint64_t voxels, double part) {
  const double at = part * static_cast<double>(voxels - 1);
  const auto rank = static_cast<std::uint64_t>(at);
  const double below = ValueAt(counted, rank), above = ValueAt(counted, rank + 1);
  return below + (above - below) * (at - std::floor(at));
}

}  // namespace

std::optional<ForegroundStatistics> StatisticsOf(const HuHistogram& counts,
                                                 const std::optional<ValueWindow>& window) {
  Counted counted;
  ForegroundStatistics found;
  for (const auto& [hu, count] : counts) {
    counted.emplace_back(Windowed(hu, window), count);
    found.voxels += count;
    found.mean += static_cast<double>(count) * counted.back().first;
  }
  if (found.voxels == 0) return std::nullopt;
  const auto voxels = static_cast<double>(found.voxels);
  found.mean /= voxels;
  for (const auto& [value, count] : counted) {
    found.std += static_cast<double>(count) * (value - found.mean) * (value - found.mean);
  }
  found.std = std::sqrt(found.std / voxels);
  found.lower = Percentile(counted, found.voxels, kLowerPart);
  found.upper = Percentile(counted, found.voxels, kUpperPart);
  return found;
}

}  // namespace patchbay::plan

#include "runtime/model/plan/value_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/core/base64.h"

namespace patchbay::plan {
namespace {

constexpr std::size_t kTenths = 1000;

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

/// Between the values of two ranks on the line, as NumPy's default has it.
template <typename OfRank>
double Percentile(std::uint64_t voxels, double percent, const OfRank& value_at) {
  const double at = percent / 100 * static_cast<double>(voxels - 1);
  const auto rank = static_cast<std::uint64_t>(at);
  const double below = value_at(rank), above = value_at(std::min(rank + 1, voxels - 1));
  return below + (above - below) * (at - std::floor(at));
}

}  // namespace

std::optional<ValueStatistics> StatisticsOf(const HuHistogram& counts,
                                            const std::optional<ValueWindow>& window,
                                            std::span<const double, 2> percentiles) {
  Counted counted;
  ValueStatistics found;
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
  const auto of_rank = [&counted](std::uint64_t rank) { return ValueAt(counted, rank); };
  found.lower = Percentile(found.voxels, percentiles[0], of_rank);
  found.upper = Percentile(found.voxels, percentiles[1], of_rank);
  return found;
}

Moments Moments::Of(std::span<const float> values) {
  Moments found;
  found.voxels = values.size();
  if (values.empty()) return found;
  const auto voxels = static_cast<double>(values.size());
  for (const float value : values) found.mean += static_cast<double>(value);
  found.mean /= voxels;
  for (const float value : values) {
    found.std += std::pow(static_cast<double>(value) - found.mean, 2);
  }
  found.std = std::sqrt(found.std / voxels);
  return found;
}

void Moments::Merge(const Moments& other) {
  const auto own = static_cast<double>(voxels), more = static_cast<double>(other.voxels);
  if (other.voxels == 0) return;
  const double apart = other.mean - mean, all = own + more;
  const double squares = own * std * std + more * other.std * other.std;
  std = std::sqrt((squares + apart * apart * own * more / all) / all);
  mean += apart * more / all;
  voxels += other.voxels;
}

FloatStatistics FloatStatistics::Of(std::span<const float> values) {
  FloatStatistics found;
  found.image = Moments::Of(values);
  const auto zero = std::equal_range(values.begin(), values.end(), 0.0f);
  found.nonzero = Moments::Of({values.begin(), zero.first});
  found.nonzero.Merge(Moments::Of({zero.second, values.end()}));
  std::string bytes((kTenths + 1) * sizeof(float), '\0');
  for (std::size_t i = 0; i <= kTenths && !values.empty(); ++i) {
    const auto value = static_cast<float>(
        plan::Percentile(values.size(), static_cast<double>(i) / 10, [&values](std::uint64_t rank) {
          return static_cast<double>(values[static_cast<std::size_t>(rank)]);
        }));
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  found.percentiles = Base64Of(bytes);
  return found;
}

StatusOr<double> FloatStatistics::Percentile(double percent) const {
  const double tenths = std::round(percent * 10);
  if (std::abs(percent * 10 - tenths) > 1e-6) {
    return InvalidArgument("range: ", percent, ": of float32 percentiles are counted in tenths");
  }
  PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(percentiles));
  const auto at = static_cast<std::size_t>(tenths) * sizeof(float);
  float value = 0;
  if (bytes.size() != (kTenths + 1) * sizeof value || at >= bytes.size()) {
    return InvalidArgument("value_statistics: not the percentiles of a volume");
  }
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace patchbay::plan

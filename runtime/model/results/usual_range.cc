#include "runtime/model/results/usual_range.h"

#include <algorithm>

namespace patchbay::results {
namespace {

constexpr double kMostDeviations = 3.5;     ///< larger means fewer outliers
constexpr double kMadToDeviation = 1.4826;  ///< for normal values: deviation / MAD
constexpr double kQuartilesToDeviation = 1 / 1.349;
constexpr double kLeastDeviationDb = 0.1;

}  // namespace

double QuantileOf(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - std::floor(at));
}

UsualRange UsualRangeOf(std::vector<double> values_db) {
  if (values_db.empty()) return {};
  UsualRange range;
  const double quartiles = QuantileOf(values_db, 0.75) - QuantileOf(values_db, 0.25);
  range.median = QuantileOf(values_db, 0.5);
  for (double& value : values_db) value = std::fabs(value - range.median);
  const double deviation = std::max({kMadToDeviation * QuantileOf(values_db, 0.5),
                                     kQuartilesToDeviation * quartiles, kLeastDeviationDb});
  range.limit = kMostDeviations * deviation;
  return range;
}

}  // namespace patchbay::results

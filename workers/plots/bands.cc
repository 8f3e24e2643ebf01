#include "workers/plots/bands.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace patchbay::workers {

double QuantileOf(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - std::floor(at));
}

Bands BandsOf(const std::vector<std::vector<double>>& curves) {
  Bands bands;
  std::vector<double> column(curves.size());
  for (std::size_t i = 0; i < curves.front().size(); ++i) {
    for (std::size_t k = 0; k < curves.size(); ++k) column[k] = curves[k][i];
    std::size_t quantile = 0;
    for (const double share : {0.05, 0.25, 0.75, 0.95}) {
      bands.quantiles[quantile++].push_back(QuantileOf(column, share));
    }
  }
  return bands;
}

}  // namespace patchbay::workers

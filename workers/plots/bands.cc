#include "workers/plots/bands.h"

#include <cstddef>

#include "runtime/model/results/usual_range.h"

namespace patchbay::workers {

Bands BandsOf(const std::vector<std::vector<double>>& curves) {
  Bands bands;
  std::vector<double> column(curves.size());
  for (std::size_t i = 0; i < curves.front().size(); ++i) {
    for (std::size_t k = 0; k < curves.size(); ++k) column[k] = curves[k][i];
    std::size_t quantile = 0;
    for (const double share : {0.05, 0.25, 0.75, 0.95}) {
      bands.quantiles[quantile++].push_back(results::QuantileOf(column, share));
    }
  }
  return bands;
}

}  // namespace patchbay::workers

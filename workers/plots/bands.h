// Many curves as a few: at each place, what share of them lies below.
#pragma once

#include <array>
#include <vector>

namespace patchbay::workers {

/// The curves' 5, 25, 75 and 95 % quantiles at every place.
struct Bands {
  std::array<std::vector<double>, 4> quantiles;
};

/// `curves`: of one length each, at least one curve.
Bands BandsOf(const std::vector<std::vector<double>>& curves);

/// The value at `share` (0 to 1) of the sorted values, between neighbours linear. `values` is not
/// empty; its order is changed.
double QuantileOf(std::vector<double>& values, double share);

}  // namespace patchbay::workers

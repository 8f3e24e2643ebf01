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

}  // namespace patchbay::workers

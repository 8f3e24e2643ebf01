// Outliers among the values of a cohort: one rule for marking and for drawing them.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace patchbay::results {

/// Fewer slides are too few for a usual range.
inline constexpr std::size_t kLeastUsualSlides = 5;

/// The range of usual values among some.
struct UsualRange {
  double median = 0;
  double limit = 0;  ///< how far from the median a value is still usual

  bool Holds(double value) const { return std::fabs(value - median) <= limit; }
};

/// 3.5 robust standard deviations around the median: of the median absolute deviation or of the
/// distance between the quartiles, whichever is larger, and of 0.1 dB at least. So a property that
/// more than a quarter of the slides share (another scanner, another magnification) makes no
/// outliers, and neither does a cohort of nearly equal slides. {0, 0} without values.
UsualRange UsualRangeOf(std::vector<double> values_db);

/// The value at `share` (0 to 1) of the values, between neighbours linear; 0 of none. Sorts them.
double QuantileOf(std::vector<double>& values, double share);

}  // namespace patchbay::results

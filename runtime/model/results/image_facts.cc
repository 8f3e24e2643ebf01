#include "runtime/model/results/image_facts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace patchbay::results {
namespace {

constexpr double kSameDownsample = 1e-9;

/// The downsamples that the sizes of the levels imply.
std::vector<double> RatiosOf(const std::vector<Extent>& levels) {
  std::vector<double> ratios;
  for (const Extent& level : levels) {
    const Extent& finest = levels.front();
    ratios.push_back((static_cast<double>(finest.y) / static_cast<double>(level.y) +
                      static_cast<double>(finest.x) / static_cast<double>(level.x)) /
                     2);
  }
  return ratios;
}

}  // namespace

void ImageFacts::SetDownsamples(std::vector<double> of_levels) {
  const std::vector<double> ratios = RatiosOf(levels);
  const bool are_same =
      std::equal(of_levels.begin(), of_levels.end(), ratios.begin(), ratios.end(),
                 [](double one, double other) {
                   return std::abs(one - other) <= kSameDownsample * std::abs(other);
                 });
  downsamples = are_same ? std::vector<double>() : std::move(of_levels);
}

Status ImageFacts::Check() const {
  if (downsamples.empty() || downsamples.size() == levels.size()) return absl::OkStatus();
  return InvalidArgument("downsamples: expected one per level");
}

std::vector<double> ImageFacts::Downsamples() const {
  return downsamples.empty() ? RatiosOf(levels) : downsamples;
}

}  // namespace patchbay::results

#include "runtime/model/results/label_agreement.h"

#include <algorithm>
#include <cmath>

namespace patchbay::results {
namespace {

double WeightOf(KappaWeights weights, std::size_t a, std::size_t b) {
  const double distance = std::abs(static_cast<double>(a) - static_cast<double>(b));
  switch (weights) {
    case KappaWeights::kLinear:
      return distance;
    case KappaWeights::kQuadratic:
      return distance * distance;
    default:
      return a == b ? 0 : 1;
  }
}

/// The place of each of `names` in `classes`, which gets those that it lacks.
std::vector<std::size_t> PlacesOf(const std::vector<std::string>& names,
                                  std::vector<std::string>& classes) {
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    places.push_back(static_cast<std::size_t>(found - classes.begin()));
    if (found == classes.end()) classes.push_back(name);
  }
  return places;
}

/// The table with rows and columns moved to `places` of a larger one.
std::vector<std::uint64_t> Spread(const std::vector<std::uint64_t>& table,
                                  const std::vector<std::size_t>& places, std::size_t side) {
  std::vector<std::uint64_t> out(side * side);
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t k = 0; k < places.size(); ++k) {
      out[places[i] * side + places[k]] = table[i * places.size() + k];
    }
  }
  return out;
}

bool IsWhole(const StoreAgreement& counts) {
  const std::size_t cells = counts.classes.size() * counts.classes.size();
  return std::all_of(counts.pairs.begin(), counts.pairs.end(),
                     [&](const PairCounts& pair) { return pair.pixels.size() == cells; });
}

}  // namespace

Agreement AgreementOf(const std::vector<std::uint64_t>& pixels, std::size_t classes,
                      KappaWeights weights) {
  std::vector<std::uint64_t> of_a(classes), of_b(classes);
  Agreement out;
  std::uint64_t same = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t k = 0; k < classes; ++k) {
      const std::uint64_t count = pixels[i * classes + k];
      of_a[i] += count, of_b[k] += count, out.pixels += count;
      if (i == k) same += count;
    }
  }
  for (std::size_t i = 0; i < classes; ++i) {
    const auto both = static_cast<double>(of_a[i] + of_b[i]);
    out.dice.emplace_back();
    if (both > 0) out.dice.back() = 2 * static_cast<double>(pixels[i * classes + i]) / both;
  }
  if (out.pixels == 0) return out;
  const auto all = static_cast<double>(out.pixels);
  out.share = static_cast<double>(same) / all;
  double seen = 0, expected = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t k = 0; k < classes; ++k) {
      const double weight = WeightOf(weights, i, k);
      seen += weight * static_cast<double>(pixels[i * classes + k]);
      expected += weight * static_cast<double>(of_a[i]) * (static_cast<double>(of_b[k]) / all);
    }
  }
  if (expected > 0) out.kappa = 1 - seen / expected;
  return out;
}

Status AddAgreement(const StoreAgreement& other, StoreAgreement& sum) {
  if (sum.pairs.empty()) {
    for (const PairCounts& pair : other.pairs) {
      sum.pairs.push_back({.a = pair.a, .b = pair.b});
      sum.pairs.back().pixels.resize(sum.classes.size() * sum.classes.size());
    }
  }
  const auto is_same = [](const PairCounts& x, const PairCounts& y) {
    return x.a == y.a && x.b == y.b;
  };
  if (!IsWhole(other) || !IsWhole(sum) ||
      !std::equal(other.pairs.begin(), other.pairs.end(), sum.pairs.begin(), sum.pairs.end(),
                  is_same)) {
    return InvalidArgument("agreement of labels: not of these sets");
  }
  std::vector<std::string> classes = sum.classes;
  const std::vector<std::size_t> theirs = PlacesOf(other.classes, classes);
  const std::vector<std::size_t> ours = PlacesOf(sum.classes, classes);
  sum.classes = classes;
  for (std::size_t i = 0; i < sum.pairs.size(); ++i) {
    PairCounts& to = sum.pairs[i];
    const PairCounts& from = other.pairs[i];
    to.pixels = Spread(to.pixels, ours, classes.size());
    const std::vector<std::uint64_t> more = Spread(from.pixels, theirs, classes.size());
    for (std::size_t k = 0; k < more.size(); ++k) to.pixels[k] += more[k];
    to.only_a += from.only_a;
    to.only_b += from.only_b;
  }
  return absl::OkStatus();
}

}  // namespace patchbay::results

#include "runtime/cli/jobs/spectra_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

using results::SpectraDefinition;
using results::SpectraDocument;
using results::SpectraHistogram;
using results::SpectraPart;
using results::SpectraSlide;

constexpr int kQuantiles = 1000;  ///< compared at 1/1000 to 999/1000

/// The share of the coefficients in every bin.
std::vector<double> Shares(const SpectraHistogram& histogram) {
  const auto total = static_cast<double>(histogram.Total());
  std::vector<double> shares;
  for (const std::uint64_t count : histogram.counts) {
    shares.push_back(static_cast<double>(count) / total);
  }
  return shares;
}

/// The levels below which 1/1000, 2/1000, ... of the coefficients lie, linear within a bin.
std::vector<double> Quantiles(const SpectraHistogram& histogram,
                              const std::vector<double>& shares) {
  std::vector<double> levels;
  double below = 0;
  std::size_t bin = 0;
  for (int i = 1; i < kQuantiles; ++i) {
    const double wanted = static_cast<double>(i) / kQuantiles;
    while (bin + 1 < shares.size() && below + shares[bin] < wanted) below += shares[bin++];
    const double share = shares[bin];
    const double within = share > 0 ? std::clamp((wanted - below) / share, 0.0, 1.0) : 0;
    levels.push_back(histogram.low_db + (static_cast<double>(bin) + within) * histogram.bin_db);
  }
  return levels;
}

SpectraDifference Difference(const SpectraPart& a, const SpectraPart& b) {
  const SpectraHistogram &left = a.histogram, &right = b.histogram;
  const std::vector<double> shares_a = Shares(left), shares_b = Shares(right);
  SpectraDifference difference;
  difference.mean_db = {a.mean_db, b.mean_db};
  difference.std_db = {a.std_db, b.std_db};
  difference.frames_a = a.frames;
  difference.frames_b = b.frames;
  for (std::size_t i = 0; i < shares_a.size(); ++i) {
    difference.histogram_l1 += std::fabs(shares_a[i] - shares_b[i]);
  }
  const auto of_a = Quantiles(left, shares_a), of_b = Quantiles(right, shares_b);
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const double gap = std::fabs(of_a[i] - of_b[i]);
    if (gap <= difference.quantile_gap_db) continue;
    difference.quantile_gap_db = gap;
    difference.quantile_gap_percent = 100.0 * static_cast<double>(i + 1) / kQuantiles;
  }
  difference.identical = left.counts == right.counts && a.mean_db == b.mean_db &&
                         a.std_db == b.std_db && a.radial.power == b.radial.power;
  return difference;
}

/// Members of the definition as text, in the order people think of them.
std::vector<std::pair<const char*, std::string>> Members(const SpectraDefinition& d) {
  return {{"definition version", StrCat(d.version)},
          {"frame", StrCat(d.frame)},
          {"hop", StrCat(d.hop)},
          {"window", d.window},
          {"prefilter", d.prefilter},
          {"channel", d.channel},
          {"tissue_only", StrCat(d.tissue_only)},
          {"tissue", DumpJson(d.tissue)},
          {"level", StrCat(d.level)},
          {"floor_db", StrCat(d.floor_db)},
          {"step_db", StrCat(d.step_db)}};
}

/// Slides by origin; null where several share one.
std::map<std::string, const SpectraSlide*> ByOrigin(const SpectraDocument& document) {
  std::map<std::string, const SpectraSlide*> slides;
  for (const SpectraSlide& slide : document.slides) {
    const auto [at, is_new] = slides.emplace(slide.origin, &slide);
    if (!is_new) at->second = nullptr;
  }
  return slides;
}

/// Pairs slides with the same id, and then a remaining slide with the one store that was made from
/// it.
void MatchSlides(const SpectraDocument& a, const SpectraDocument& b,
                 SpectraComparison& comparison) {
  const auto origins_a = ByOrigin(a), origins_b = ByOrigin(b);
  std::map<std::string, const SpectraSlide*> left;
  for (const SpectraSlide& slide : b.slides) left.emplace(slide.id, &slide);
  for (const SpectraSlide& slide : a.slides) {
    auto other = left.find(slide.id);
    const auto origin = origins_b.find(slide.origin);
    if (other == left.end() && origin != origins_b.end() && origin->second != nullptr &&
        origins_a.at(slide.origin) != nullptr) {
      other = left.find(origin->second->id);
    }
    if (other == left.end()) {
      comparison.only_a.push_back(slide.id);
      continue;
    }
    comparison.slides.push_back({slide.id, other->second->id, Difference(slide, *other->second)});
    left.erase(other);
  }
  for (const auto& [id, slide] : left) comparison.only_b.push_back(id);
}

Json PairToJson(const FigurePair& pair) {
  const std::optional<double> percent = pair.Percent();
  return {{"a", pair.a},
          {"b", pair.b},
          {"difference", pair.Difference()},
          {"percent", percent.has_value() ? Json(*percent) : Json()}};
}

Json DifferenceToJson(const SpectraDifference& difference) {
  return {{"mean_db", PairToJson(difference.mean_db)},
          {"std_db", PairToJson(difference.std_db)},
          {"frames", {{"a", difference.frames_a}, {"b", difference.frames_b}}},
          {"histogram_l1", difference.histogram_l1},
          {"total_variation", difference.histogram_l1 / 2},
          {"quantile_gap_db", difference.quantile_gap_db},
          {"quantile_gap_percent", difference.quantile_gap_percent},
          {"identical", difference.identical},
          {"within_study", difference.WithinStudy()}};
}

}  // namespace

std::optional<double> FigurePair::Percent() const {
  if (a == b) return 0.0;
  if (a == 0) return std::nullopt;
  return 100 * std::fabs(b - a) / std::fabs(a);
}

bool SpectraDifference::WithinStudy() const {
  const auto within = [](const FigurePair& pair, double bound) {
    const std::optional<double> percent = pair.Percent();
    return percent.has_value() && *percent <= bound;
  };
  return within(mean_db, kStudyMeanPercent) && within(std_db, kStudyStdPercent);
}

std::vector<std::string> DefinitionDifferences(const SpectraDocument& a, const SpectraDocument& b) {
  std::vector<std::string> differences;
  const auto left = Members(a.definition), right = Members(b.definition);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].second == right[i].second) continue;
    differences.push_back(
        StrCat(left[i].first, " is ", left[i].second, " in A and ", right[i].second, " in B"));
  }
  return differences;
}

StatusOr<SpectraComparison> CompareSpectra(const SpectraDocument& a, const SpectraDocument& b,
                                           bool force) {
  for (const auto& [document, name] : {std::pair<const SpectraDocument&, char>{a, 'A'}, {b, 'B'}}) {
    if (document.cohort.has_value()) continue;
    return FailedPrecondition("compare spectra: ", name, ": no slide was measured");
  }
  const std::vector<std::string> differences = DefinitionDifferences(a, b);
  if (!differences.empty() && !force) {
    return FailedPrecondition("compare spectra: the definitions differ: ",
                              StrJoin(differences, "; "));
  }
  if (!a.cohort->histogram.SameBins(b.cohort->histogram)) {
    return FailedPrecondition("compare spectra: the histograms have different bins");
  }
  SpectraComparison comparison;
  comparison.remarks = differences;
  const auto remark = [&](const char* name, const std::string& left, const std::string& right) {
    if (left == right) return;
    comparison.remarks.push_back(StrCat(name, " is ", left, " in A and ", right, " in B"));
  };
  remark("numerics", a.definition.numerics, b.definition.numerics);
  remark("skip_damaged", StrCat(a.definition.skip_damaged), StrCat(b.definition.skip_damaged));
  comparison.cohort = Difference(*a.cohort, *b.cohort);
  MatchSlides(a, b, comparison);
  return comparison;
}

Json ToJson(const SpectraComparison& comparison) {
  Json json = DifferenceToJson(comparison.cohort);
  Json slides = Json::array();
  for (const SlideDifference& slide : comparison.slides) {
    slides.push_back(DifferenceToJson(slide.difference));
    slides.back()["id"] = slide.id;
    slides.back()["id_b"] = slide.id_b;
  }
  json["slides"] = slides;
  json["only_a"] = comparison.only_a;
  json["only_b"] = comparison.only_b;
  json["remarks"] = comparison.remarks;
  json["study"] = {{"mean_percent", kStudyMeanPercent}, {"std_percent", kStudyStdPercent}};
  return json;
}

}  // namespace patchbay::cli

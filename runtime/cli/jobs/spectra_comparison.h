// Compares two spectral analyses, for `patchbay spectra-diff`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/results/spectra_document.h"

namespace patchbay::cli {

/// The agreement that the published study reports between its architectures: percent of the mean,
/// and of the standard deviation, of the cohort's levels.
inline constexpr double kStudyMeanPercent = 0.5, kStudyStdPercent = 1.8;

/// One figure of A and of B.
struct FigurePair {
  double a = 0, b = 0;

  double Difference() const { return b - a; }
  /// Difference in per cent of A; none when A is 0 and B is not.
  std::optional<double> Percent() const;
};

struct SpectraDifference {
  FigurePair mean_db, std_db;
  std::int64_t frames_a = 0, frames_b = 0;
  double histogram_l1 = 0;          ///< distance of shares: 0 = equal, 2 = disjoint; half of it is
                                    ///< the total variation
  double quantile_gap_db = 0;       ///< the largest, from 0.1 % to 99.9 %
  double quantile_gap_percent = 0;  ///< the quantile that has it
  bool identical = false;           ///< every count, mean and deviation

  /// Within both of the study's bounds.
  bool WithinStudy() const;
};

struct SlideDifference {
  std::string id, id_b;  ///< in A and in B: of a slide and a store made from it they differ
  SpectraDifference difference;
};

struct SpectraComparison {
  SpectraDifference cohort;
  std::vector<SlideDifference> slides;  ///< in both, by the id in A
  std::vector<std::string> only_a, only_b;
  std::vector<std::string> remarks;  ///< differences of the definitions that are not refused
};

/// Differences of the two definitions that make figures incomparable, one line each; empty when
/// they are comparable.
std::vector<std::string> DefinitionDifferences(const results::SpectraDocument& a,
                                               const results::SpectraDocument& b);

/// FailedPrecondition when one has no slide, when their histograms have other bins, or, unless
/// `force`, when their definitions differ: it names each difference.
StatusOr<SpectraComparison> CompareSpectra(const results::SpectraDocument& a,
                                           const results::SpectraDocument& b, bool force);

Json ToJson(const SpectraComparison& comparison);

}  // namespace patchbay::cli

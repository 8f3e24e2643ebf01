// Turns sums into figures for people: the objects of spectra.json and the rows of spectra.csv
// (configs/spectra.md has the schema).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/spectral/spectral_sums.h"
#include "runtime/model/results/spectra_document.h"
#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/spectra_staging.h"

namespace patchbay::workers {

/// One slide, without the members that depend on the cohort: outlier and outlier_reasons.
/// InvalidArgument when the sums cannot be added up.
StatusOr<results::SpectraSlide> SlideFigures(const SlideSpectra& slide,
                                             const plan::SpectralOptions& options);

/// All slides' frames together, added one slide after another.
class CohortFigures {
 public:
  explicit CohortFigures(const plan::SpectralOptions& options);

  Status Add(const SlideSpectra& slide);
  /// None when nothing was added. `outliers`: ids.
  StatusOr<std::optional<results::SpectraCohort>> Finish(
      const std::vector<std::string>& outliers) const;

 private:
  const plan::SpectralOptions options_;
  std::int64_t slides_ = 0;
  std::uint64_t frames_skipped_ = 0, frames_off_tissue_ = 0;
  std::vector<ops::SpectralSums> sums_;
  std::optional<double> least_mpp_, most_mpp_;
  bool lacks_mpp_ = false;
};

/// Sets outlier and outlier_reasons of every slide: flat slides, and with enough slides those far
/// from the others.
void MarkOutliers(std::vector<results::SpectraSlide>& slides);

/// spectra.csv.
std::string SpectraCsv(const std::vector<results::SpectraSlide>& slides);

}  // namespace patchbay::workers

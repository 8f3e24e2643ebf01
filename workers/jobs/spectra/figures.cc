#include "workers/jobs/spectra/figures.h"

#include <algorithm>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/usual_range.h"

namespace patchbay::workers {
namespace {

using results::SpectraFigures;
using results::SpectraSlide;

constexpr std::pair<const char*, double SpectraFigures::*> kOutlierScalars[] = {
    {"mean", &SpectraFigures::mean_db},
    {"std", &SpectraFigures::std_db},
    {"focus", &SpectraFigures::focus_db}};

/// Slides whose pixels differ in size by more do not share an axis of cycles/um.
constexpr double kSameMpp = 0.01;
/// Nothing but the floor: the 99th percentile lies in the lowest bin.
constexpr double kFlatDb = ops::kSpectralBinDb;

SpectraFigures Figures(const ops::SpectralSums& sums, const plan::SpectralOptions& options,
                       const std::optional<double>& mpp) {
  const auto percentile = [&](double share) { return ops::PercentileDb(sums, share); };
  const std::vector<double> rings = ops::RingMeans(sums);
  const double step = 1.0 / options.frame;
  SpectraFigures figures;
  figures.mean_db = ops::MeanDb(sums);
  figures.std_db = ops::StdDb(sums);
  figures.focus_db = ops::FocusDb(sums, options);
  figures.percentiles = {percentile(0.01), percentile(0.05), percentile(0.25), percentile(0.5),
                         percentile(0.75), percentile(0.95), percentile(0.99)};
  figures.histogram = {0, ops::kSpectralBinDb, {sums.histogram.begin(), sums.histogram.end()}};
  figures.radial = {mpp ? "cycles/um" : "cycles/pixel",
                    mpp ? step / *mpp : step,
                    {rings.begin() + 1, rings.end()}};
  return figures;
}

/// Fills the figures that slides and cohorts have in common.
Status FillPart(const std::vector<ops::SpectralSums>& sums, const plan::SpectralOptions& options,
                const std::optional<double>& mpp, results::SpectraPart& part) {
  ops::SpectralSums all = sums.front();
  for (std::size_t i = 1; i < sums.size(); ++i) PB_RETURN_IF_ERROR(ops::Merge(sums[i], all));
  static_cast<SpectraFigures&>(part) = Figures(all, options, mpp);
  part.frames = static_cast<std::int64_t>(sums.front().frames);
  part.mpp = mpp;
  if (sums.size() == 1) return absl::OkStatus();
  const auto figures = [&](std::size_t channel) { return Figures(sums[channel], options, mpp); };
  part.channels = {figures(0), figures(1), figures(2)};
  return absl::OkStatus();
}

/// Adds "<name> low" or "<name> high" to the slides whose `figure` is far from the others'.
void MarkFar(const std::string& name, double SpectraFigures::*figure,
             const std::vector<SpectraSlide*>& slides) {
  std::vector<double> values;
  for (const SpectraSlide* slide : slides) values.push_back(slide->*figure);
  const results::UsualRange usual = results::UsualRangeOf(values);
  for (SpectraSlide* slide : slides) {
    if (usual.Holds(slide->*figure)) continue;
    slide->outlier_reasons.push_back(name + (slide->*figure < usual.median ? " low" : " high"));
  }
}

std::string CsvCell(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? CsvField(value.get<std::string>()) : DumpJson(value);
}

}  // namespace

StatusOr<SpectraSlide> SlideFigures(const SlideSpectra& slide,
                                    const plan::SpectralOptions& options) {
  SpectraSlide figures;
  PB_RETURN_IF_ERROR(FillPart(slide.sums, options, slide.mpp, figures));
  LevelLayout level;
  level.size = Flat(slide.height, slide.width);
  figures.id = slide.id;
  figures.origin = slide.origin;
  figures.width = slide.width;
  figures.height = slide.height;
  figures.remainder = RemainderOf(GridOf(level, options));
  figures.frames_skipped = static_cast<std::int64_t>(slide.frames_skipped);
  figures.frames_off_tissue = static_cast<std::int64_t>(slide.frames_off_tissue);
  return figures;
}

CohortFigures::CohortFigures(const plan::SpectralOptions& options)
    : options_(options),
      sums_(static_cast<std::size_t>(plan::SpectralChannels(options)), ops::SpectralSums(options)) {
}

Status CohortFigures::Add(const SlideSpectra& slide) {
  if (slide.sums.size() != sums_.size()) {
    return Internal("spectra: the slide's channels differ from the cohort's");
  }
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    PB_RETURN_IF_ERROR(ops::Merge(slide.sums[i], sums_[i]));
  }
  ++slides_;
  frames_skipped_ += slide.frames_skipped;
  frames_off_tissue_ += slide.frames_off_tissue;
  lacks_mpp_ = lacks_mpp_ || !slide.mpp;
  if (slide.mpp) {
    least_mpp_ = std::min(least_mpp_.value_or(*slide.mpp), *slide.mpp);
    most_mpp_ = std::max(most_mpp_.value_or(*slide.mpp), *slide.mpp);
  }
  return absl::OkStatus();
}

StatusOr<std::optional<results::SpectraCohort>> CohortFigures::Finish(
    const std::vector<std::string>& outliers) const {
  if (slides_ == 0) return std::nullopt;
  std::optional<double> mpp;
  const bool is_mixed = lacks_mpp_ || *most_mpp_ > *least_mpp_ * (1 + kSameMpp);
  if (!is_mixed) mpp = (*least_mpp_ + *most_mpp_) / 2;
  results::SpectraCohort cohort;
  PB_RETURN_IF_ERROR(FillPart(sums_, options_, mpp, cohort));
  cohort.slides = slides_;
  cohort.frames_skipped = static_cast<std::int64_t>(frames_skipped_);
  cohort.frames_off_tissue = static_cast<std::int64_t>(frames_off_tissue_);
  cohort.outliers = outliers;
  return cohort;
}

void MarkOutliers(std::vector<SpectraSlide>& slides) {
  std::vector<SpectraSlide*> usual;
  for (SpectraSlide& slide : slides) {
    const bool is_flat = slide.percentiles.p99 < kFlatDb;
    if (is_flat) slide.outlier_reasons = {"flat"};
    if (!is_flat) usual.push_back(&slide);
  }
  if (usual.size() >= results::kLeastUsualSlides) {
    for (const auto& [name, figure] : kOutlierScalars) MarkFar(name, figure, usual);
  }
  for (SpectraSlide& slide : slides) slide.outlier = !slide.outlier_reasons.empty();
}

std::string SpectraCsv(const std::vector<SpectraSlide>& slides) {
  const std::vector<std::string> heading = {"id",
                                            "frames",
                                            "frames_skipped",
                                            "frames_off_tissue",
                                            "width",
                                            "height",
                                            "remainder_right",
                                            "remainder_bottom",
                                            "mpp",
                                            "mean_db",
                                            "std_db",
                                            "p1",
                                            "p5",
                                            "p25",
                                            "p50",
                                            "p75",
                                            "p95",
                                            "p99",
                                            "focus_db",
                                            "outlier",
                                            "outlier_reasons"};
  std::string text = CsvRow(heading);
  for (const SpectraSlide& slide : slides) {
    Json row = JsonOf(slide);
    row["remainder_right"] = slide.remainder.right;
    row["remainder_bottom"] = slide.remainder.bottom;
    row["outlier_reasons"] = StrJoin(slide.outlier_reasons, ";");
    row.update(row["percentiles"]);
    std::vector<std::string> cells;
    for (const std::string& name : heading) cells.push_back(CsvCell(row[name]));
    text += CsvRow(cells);
  }
  return text;
}

}  // namespace patchbay::workers

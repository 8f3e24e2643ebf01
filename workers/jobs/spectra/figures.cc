#include "workers/jobs/spectra/figures.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/model/results/usual_range.h"

namespace patchbay::workers {
namespace {

constexpr std::array<std::pair<const char*, double>, 7> kPercentiles = {{{"p1", 0.01},
                                                                         {"p5", 0.05},
                                                                         {"p25", 0.25},
                                                                         {"p50", 0.5},
                                                                         {"p75", 0.75},
                                                                         {"p95", 0.95},
                                                                         {"p99", 0.99}}};
constexpr std::array kChannelNames = {"red", "green", "blue"};
constexpr std::array kOutlierScalars = {"mean", "std", "focus"};

/// Slides whose pixels differ in size by more do not share an axis of cycles/um.
constexpr double kSameMpp = 0.01;
/// Nothing but the floor: the 99th percentile lies in the lowest bin.
constexpr double kFlatDb = ops::kSpectralBinDb;

Json Figures(const ops::SpectralSums& sums, const plan::SpectralOptions& options,
             const std::optional<double>& mpp) {
  Json percentiles = Json::object();
  for (const auto& [name, fraction] : kPercentiles) {
    percentiles[name] = ops::PercentileDb(sums, fraction);
  }
  const std::vector<double> rings = ops::RingMeans(sums);
  const double step = 1.0 / options.frame;
  return {
      {"mean_db", ops::MeanDb(sums)},
      {"std_db", ops::StdDb(sums)},
      {"focus_db", ops::FocusDb(sums, options)},
      {"percentiles", percentiles},
      {"histogram", {{"low_db", 0}, {"bin_db", ops::kSpectralBinDb}, {"counts", sums.histogram}}},
      {"radial",
       {{"unit", mpp ? "cycles/um" : "cycles/pixel"},
        {"frequency_step", mpp ? step / *mpp : step},
        {"power", std::vector<double>(rings.begin() + 1, rings.end())}}}};
}

/// The figures that slides and cohorts have in common.
StatusOr<Json> PartFigures(const std::vector<ops::SpectralSums>& sums,
                           const plan::SpectralOptions& options, const std::optional<double>& mpp) {
  ops::SpectralSums all = sums.front();
  for (std::size_t i = 1; i < sums.size(); ++i) PB_RETURN_IF_ERROR(ops::Merge(sums[i], all));
  Json part = Figures(all, options, mpp);
  part["frames"] = sums.front().frames;
  part["mpp"] = mpp ? Json(*mpp) : Json();
  if (sums.size() > 1) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      part["channels"][kChannelNames[i]] = Figures(sums[i], options, mpp);
    }
  }
  return part;
}

/// Adds "<name> low" or "<name> high" to the slides whose <name>_db is far from the others'.
void MarkFar(const std::string& name, const std::vector<Json*>& slides) {
  const std::string key = name + "_db";
  std::vector<double> values;
  for (const Json* slide : slides) values.push_back((*slide)[key].get<double>());
  const results::UsualRange usual = results::UsualRangeOf(values);
  for (std::size_t i = 0; i < slides.size(); ++i) {
    if (usual.Holds(values[i])) continue;
    (*slides[i])["outlier_reasons"].push_back(name + (values[i] < usual.median ? " low" : " high"));
  }
}

std::string CsvCell(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? CsvField(value.get<std::string>()) : DumpJson(value);
}

}  // namespace

StatusOr<Json> SlideFigures(const SlideSpectra& slide, const plan::SpectralOptions& options) {
  PB_ASSIGN_OR_RETURN(Json json, PartFigures(slide.sums, options, slide.mpp));
  LevelLayout level;
  level.size = Flat(slide.height, slide.width);
  const SpectraRemainder remainder = RemainderOf(GridOf(level, options));
  json["id"] = slide.id;
  json["origin"] = slide.origin;
  json["width"] = slide.width;
  json["height"] = slide.height;
  json["remainder"] = {{"right", remainder.right}, {"bottom", remainder.bottom}};
  json["frames_skipped"] = slide.frames_skipped;
  json["frames_off_tissue"] = slide.frames_off_tissue;
  return json;
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

StatusOr<Json> CohortFigures::Finish(const std::vector<std::string>& outliers) const {
  if (slides_ == 0) return Json();
  std::optional<double> mpp;
  const bool is_mixed = lacks_mpp_ || *most_mpp_ > *least_mpp_ * (1 + kSameMpp);
  if (!is_mixed) mpp = (*least_mpp_ + *most_mpp_) / 2;
  PB_ASSIGN_OR_RETURN(Json json, PartFigures(sums_, options_, mpp));
  json["slides"] = slides_;
  json["frames_skipped"] = frames_skipped_;
  json["frames_off_tissue"] = frames_off_tissue_;
  json["outliers"] = outliers;
  return json;
}

void MarkOutliers(Json& slides) {
  std::vector<Json*> usual;
  for (Json& slide : slides) {
    const bool is_flat = slide["percentiles"]["p99"].get<double>() < kFlatDb;
    slide["outlier_reasons"] = is_flat ? Json{"flat"} : Json::array();
    if (!is_flat) usual.push_back(&slide);
  }
  if (usual.size() >= results::kLeastUsualSlides) {
    for (const char* name : kOutlierScalars) MarkFar(name, usual);
  }
  for (Json& slide : slides) slide["outlier"] = !slide["outlier_reasons"].empty();
}

std::string SpectraCsv(const Json& document) {
  std::vector<std::string> heading = {"id",    "frames",  "frames_skipped",  "frames_off_tissue",
                                      "width", "height",  "remainder_right", "remainder_bottom",
                                      "mpp",   "mean_db", "std_db"};
  for (const auto& [name, fraction] : kPercentiles) heading.emplace_back(name);
  for (const char* name : {"focus_db", "outlier", "outlier_reasons"}) heading.emplace_back(name);
  std::string text = CsvRow(heading);
  for (Json row : document["slides"]) {
    row["remainder_right"] = row["remainder"]["right"];
    row["remainder_bottom"] = row["remainder"]["bottom"];
    for (const auto& [name, fraction] : kPercentiles) row[name] = row["percentiles"][name];
    std::vector<std::string> reasons = row["outlier_reasons"];
    row["outlier_reasons"] = StrJoin(reasons, ";");
    std::vector<std::string> cells;
    for (const std::string& name : heading) cells.push_back(CsvCell(row[name]));
    text += CsvRow(cells);
  }
  return text;
}

}  // namespace patchbay::workers

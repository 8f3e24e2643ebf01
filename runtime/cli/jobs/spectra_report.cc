// The report of an analysis at its end: figures of each slide and of the cohort, failures with
// their reasons, the plots.
#include <algorithm>

#include "runtime/cli/jobs/slide_job.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/spectra_summary.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxRows = 40;  ///< slides on the terminal; spectra.csv has all

using Slides = std::vector<results::MeasuredSlide>;

/// Outliers first when there are too many slides for all; then by id, as in spectra.json.
Slides ShownSlides(Slides slides) {
  if (slides.size() <= kMaxRows) return slides;
  std::stable_partition(slides.begin(), slides.end(),
                        [](const results::MeasuredSlide& slide) { return slide.outlier; });
  slides.resize(kMaxRows);
  return slides;
}

/// A row of the table: frames and levels of a slide, or of the cohort.
std::vector<std::string> FiguresRow(std::string name, const results::MeasuredCohort& figures,
                                    std::string outlier, std::string from) {
  return {std::move(name),          StrCat(figures.frames),     Fixed(figures.mean_db, 2),
          Fixed(figures.std_db, 2), Fixed(figures.focus_db, 2), std::move(outlier),
          std::move(from)};
}

void SayTable(const Slides& slides, const results::MeasuredCohort& cohort, SlideReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"slide", "frames", "mean dB", "std dB", "focus dB", "outlier", "from"}};
  for (const results::MeasuredSlide& slide : ShownSlides(slides)) {
    const auto& reasons = slide.outlier_reasons;
    rows.push_back(FiguresRow(slide.id, slide, reasons.empty() ? "-" : StrJoin(reasons, ", "),
                              FileName(SourceName(report.slides, slide.source_index)) +
                                  (slide.already_there ? " (already there)" : "")));
  }
  const auto outliers =
      std::count_if(slides.begin(), slides.end(), [](const auto& slide) { return slide.outlier; });
  rows.push_back(FiguresRow(StrCat("all ", slides.size()), cohort, StrCat(outliers), ""));
  report.lines = FormatTable(rows, {false, true, true, true, true});
  if (slides.size() > kMaxRows) {
    report.lines.push_back(StrCat("... and ", slides.size() - kMaxRows, " more: ", report.out,
                                  "/spectra.csv has all"));
  }
}

void SayMeasured(const results::SpectraSummary& measured, std::uint64_t pixel_bytes,
                 double bytes_per_s, SlideReport& report) {
  if (measured.cohort) {
    SayTable(measured.slides, *measured.cohort, report);
  } else {
    report.lines.emplace_back("no slide was measured");
  }
  const std::string speed =
      pixel_bytes > 0 ? StrCat(", ", MegabytesPerSecond(bytes_per_s), " of raw pixels") : "";
  report.lines.push_back(StrCat("in ", HumanSeconds(report.seconds), speed, ", into ", report.out));
  if (!measured.plots.empty()) {
    report.lines.push_back("plots: " + StrJoin(measured.plots, ", "));
  }
  for (const results::SpectraDuplicate& slide : measured.duplicates) {
    report.notes.push_back(
        StrCat("counted once, duplicate content: ", SourceName(report.slides, slide.index)));
  }
  const std::int64_t skipped = measured.cohort ? measured.cohort->frames_skipped : 0;
  if (skipped > 0) {
    report.notes.push_back(StrCat(skipped, " frames on damaged tiles are left out"));
  }
}

/// From a results::SpectraSummary.
Status FillSpectraReport(const protocol::JobRow& job, const Json& summary, SlideReport& report) {
  PB_ASSIGN_OR_RETURN(const auto measured,
                      FromJson<results::SpectraSummary>(summary, "spectra summary"));
  Json slides = Json::array(), duplicates = Json::array(), plots = Json::array();
  std::uint64_t pixel_bytes = 0;
  for (const results::MeasuredSlide& slide : measured.slides) {
    Json row = JsonOf(slide);
    row.erase("source_index");
    row.erase("pixel_bytes");
    row["source"] = SourceName(report.slides, slide.source_index);
    slides.push_back(std::move(row));
    pixel_bytes += slide.pixel_bytes;
  }
  const Outcomes outcomes = OutcomesOf(job);
  for (const auto& [source, outcome] : measured.failed) {
    report.failed.push_back({SourceName(report.slides, source),
                             outcome.code == 0 ? WhyFailed(outcomes, source) : outcome});
  }
  for (const results::SpectraDuplicate& slide : measured.duplicates) {
    duplicates.push_back(SourceName(report.slides, slide.index));
  }
  for (const std::string& plot : measured.plots) plots.push_back(StrCat(report.out, "/", plot));
  report.sources = report.failed.size() + slides.size() + duplicates.size();
  const double bytes_per_s = static_cast<double>(pixel_bytes) / std::max(report.seconds, 1e-9);
  report.own = {{"spectra", report.out + "/spectra.json"},
                {"pixel_bytes", pixel_bytes},
                {"bytes_per_s", bytes_per_s},
                {"definition", JsonOf(measured.definition)},
                {"cohort", JsonOf(measured.cohort)},
                {"slides", std::move(slides)},
                {"duplicates", std::move(duplicates)},
                {"plots", std::move(plots)}};
  SayMeasured(measured, pixel_bytes, bytes_per_s, report);
  return absl::OkStatus();
}

/// The files in the order of slide numbers, from the table that the job writes next to its results.
std::vector<std::string> SlidesOf(const Json& /*summary*/, const SlideJobRequest& request) {
  std::vector<std::string> slides;
  const auto paths = ReadManifestCsv(request.out, "index", "path");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto path = paths.find(StrCat(i));
    if (path == paths.end()) return request.slides;
    slides.push_back(path->second);
  }
  return slides.empty() ? request.slides : slides;
}

}  // namespace

const StagedJobKind kSpectraKind = {
    .kind = "spectra", .fill = FillSpectraReport, .slides = SlidesOf};

}  // namespace patchbay::cli

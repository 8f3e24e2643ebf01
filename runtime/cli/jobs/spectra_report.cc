#include "runtime/cli/jobs/spectra_report.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/spectra_summary.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxRows = 40;  ///< slides on the terminal; spectra.csv has all

/// Outliers first when there are too many slides for all; then by id, as in spectra.json.
std::vector<const Json*> ShownSlides(const Json& slides) {
  std::vector<const Json*> shown;
  for (const Json& slide : slides) shown.push_back(&slide);
  if (shown.size() <= kMaxRows) return shown;
  std::stable_partition(shown.begin(), shown.end(),
                        [](const Json* slide) { return (*slide)["outlier"].get<bool>(); });
  shown.resize(kMaxRows);
  return shown;
}

/// A row of the table: frames and levels of a slide, or of the cohort.
std::vector<std::string> FiguresRow(std::string name, const Json& figures, std::string outlier,
                                    std::string from) {
  const auto decibel = [&](const char* key) { return Fixed(figures[key].get<double>(), 2); };
  return {std::move(name),     StrCat(figures["frames"].get<std::int64_t>()),
          decibel("mean_db"),  decibel("std_db"),
          decibel("focus_db"), std::move(outlier),
          std::move(from)};
}

void SayTable(Terminal& terminal, const SlideReport& report) {
  const Json& slides = report.own["slides"];
  std::vector<std::vector<std::string>> rows = {
      {"slide", "frames", "mean dB", "std dB", "focus dB", "outlier", "from"}};
  for (const Json* slide : ShownSlides(slides)) {
    const auto reasons = (*slide)["outlier_reasons"].get<std::vector<std::string>>();
    rows.push_back(FiguresRow(
        (*slide)["id"].get<std::string>(), *slide, reasons.empty() ? "-" : StrJoin(reasons, ", "),
        FileName((*slide)["source"].get<std::string>()) +
            ((*slide)["already_there"].get<bool>() ? " (already there)" : "")));
  }
  const auto outliers = std::count_if(
      slides.begin(), slides.end(), [](const Json& slide) { return slide["outlier"].get<bool>(); });
  rows.push_back(
      FiguresRow(StrCat("all ", slides.size()), report.own["cohort"], StrCat(outliers), ""));
  for (const std::string& line : FormatTable(rows, {false, true, true, true, true})) {
    terminal.Say(line);
  }
  if (slides.size() > kMaxRows) {
    terminal.Say(StrCat("... and ", slides.size() - kMaxRows, " more: ", report.out,
                        "/spectra.csv has all"));
  }
}

}  // namespace

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
  report.own = {{"spectra", report.out + "/spectra.json"},
                {"pixel_bytes", pixel_bytes},
                {"bytes_per_s", static_cast<double>(pixel_bytes) / std::max(report.seconds, 1e-9)},
                {"definition", JsonOf(measured.definition)},
                {"cohort", JsonOf(measured.cohort)},
                {"slides", std::move(slides)},
                {"duplicates", std::move(duplicates)},
                {"plots", std::move(plots)}};
  return absl::OkStatus();
}

void SaySpectraReport(Terminal& terminal, const SlideReport& report) {
  const Json& own = report.own;
  const bool has_cohort = !own["cohort"].is_null();
  if (has_cohort) {
    SayTable(terminal, report);
  } else {
    terminal.Say("no slide was measured");
  }
  std::string speed;
  if (own["pixel_bytes"] > 0) {
    speed = StrCat(", ", MegabytesPerSecond(own["bytes_per_s"].get<double>()), " of raw pixels");
  }
  terminal.Say(StrCat("in ", HumanSeconds(report.seconds), speed, ", into ", report.out));
  std::vector<std::string> plots;
  for (const Json& plot : own["plots"]) plots.push_back(FileName(plot.get<std::string>()));
  if (!plots.empty()) terminal.Say("plots: " + StrJoin(plots, ", "));
  for (const Json& duplicate : own["duplicates"]) {
    terminal.Note(StrCat("counted once, duplicate content: ", duplicate.get<std::string>()));
  }
  const auto skipped = has_cohort ? own["cohort"]["frames_skipped"].get<std::int64_t>() : 0;
  if (skipped > 0) {
    terminal.Note(StrCat(skipped, " frames on damaged tiles are left out"));
  }
}

}  // namespace patchbay::cli

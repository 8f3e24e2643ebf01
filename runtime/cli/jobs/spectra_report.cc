#include "runtime/cli/jobs/spectra_report.h"

#include <algorithm>
#include <utility>

#include "runtime/cli/skipped_files.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/outcome_json.h"

namespace patchbay::cli {
namespace {

constexpr char kWhat[] = "spectra summary";
constexpr std::size_t kMaxRows = 40;  ///< slides on the terminal; spectra.csv has all

StatusOr<std::vector<std::string>> Texts(const Json& row, const char* key) {
  PB_ASSIGN_OR_RETURN(const Json* list, JsonMember(row, key, kWhat));
  std::vector<std::string> texts;
  for (const Json& text : *list) {
    if (!text.is_string()) {
      return absl::InvalidArgumentError(StrCat(kWhat, ": ", key, ": not a list of text"));
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

StatusOr<MeasuredSlide> ParseSlide(const Json& row, const std::vector<std::string>& sources) {
  MeasuredSlide slide;
  PB_ASSIGN_OR_RETURN(const std::int64_t source, JsonInt(row, "source_index", kWhat));
  slide.source = SourceName(sources, source);
  PB_ASSIGN_OR_RETURN(slide.id, JsonString(row, "id", kWhat));
  PB_ASSIGN_OR_RETURN(slide.frames, JsonInt(row, "frames", kWhat));
  PB_ASSIGN_OR_RETURN(slide.frames_skipped, JsonInt(row, "frames_skipped", kWhat));
  PB_ASSIGN_OR_RETURN(slide.mean_db, JsonDouble(row, "mean_db", kWhat));
  PB_ASSIGN_OR_RETURN(slide.std_db, JsonDouble(row, "std_db", kWhat));
  PB_ASSIGN_OR_RETURN(slide.focus_db, JsonDouble(row, "focus_db", kWhat));
  PB_ASSIGN_OR_RETURN(slide.outlier_reasons, Texts(row, "outlier_reasons"));
  PB_ASSIGN_OR_RETURN(slide.pixel_bytes, JsonCount(row, "pixel_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(slide.already_there, JsonBool(row, "already_there", kWhat));
  return slide;
}

StatusOr<std::optional<MeasuredCohort>> ParseCohort(const Json& summary) {
  PB_ASSIGN_OR_RETURN(const Json* row, JsonMember(summary, "cohort", kWhat));
  if (row->is_null()) return std::optional<MeasuredCohort>();
  MeasuredCohort cohort;
  PB_ASSIGN_OR_RETURN(cohort.frames, JsonInt(*row, "frames", kWhat));
  PB_ASSIGN_OR_RETURN(cohort.frames_skipped, JsonInt(*row, "frames_skipped", kWhat));
  PB_ASSIGN_OR_RETURN(cohort.mean_db, JsonDouble(*row, "mean_db", kWhat));
  PB_ASSIGN_OR_RETURN(cohort.std_db, JsonDouble(*row, "std_db", kWhat));
  PB_ASSIGN_OR_RETURN(cohort.focus_db, JsonDouble(*row, "focus_db", kWhat));
  return std::optional<MeasuredCohort>(cohort);
}

StatusOr<FailedSource> ParseFailure(const Json& row, const std::vector<std::string>& sources,
                                    const Outcomes& outcomes) {
  PB_ASSIGN_OR_RETURN(const std::int64_t source, JsonInt(row, "source_index", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* said, JsonMember(row, "outcome", kWhat));
  PB_ASSIGN_OR_RETURN(Outcome outcome, OutcomeFromJson(*said));
  if (outcome.code == 0) outcome = WhyFailed(outcomes, source);
  return FailedSource{SourceName(sources, source), std::move(outcome)};
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::uint64_t PixelBytes(const SpectraReport& report) {
  std::uint64_t bytes = 0;
  for (const MeasuredSlide& slide : report.slides) bytes += slide.pixel_bytes;
  return bytes;
}

double BytesPerSecond(const SpectraReport& report) {
  return static_cast<double>(PixelBytes(report)) / std::max(report.seconds, 1e-9);
}

/// Outliers first when there are too many slides for all; then by id, as in spectra.json.
std::vector<const MeasuredSlide*> ShownSlides(const SpectraReport& report) {
  std::vector<const MeasuredSlide*> shown;
  for (const MeasuredSlide& slide : report.slides) shown.push_back(&slide);
  if (shown.size() <= kMaxRows) return shown;
  std::stable_partition(shown.begin(), shown.end(),
                        [](const MeasuredSlide* slide) { return !slide->outlier_reasons.empty(); });
  shown.resize(kMaxRows);
  return shown;
}

void SayTable(Terminal& terminal, const SpectraReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"slide", "frames", "mean dB", "std dB", "focus dB", "outlier", "from"}};
  for (const MeasuredSlide* slide : ShownSlides(report)) {
    rows.push_back({slide->id, StrCat(slide->frames), Fixed(slide->mean_db, 2),
                    Fixed(slide->std_db, 2), Fixed(slide->focus_db, 2),
                    slide->outlier_reasons.empty() ? "-" : StrJoin(slide->outlier_reasons, ", "),
                    FileName(slide->source) + (slide->already_there ? " (already there)" : "")});
  }
  if (report.cohort.has_value()) {
    const MeasuredCohort& cohort = *report.cohort;
    const auto outliers =
        std::count_if(report.slides.begin(), report.slides.end(),
                      [](const MeasuredSlide& slide) { return !slide.outlier_reasons.empty(); });
    rows.push_back({StrCat("all ", report.slides.size()), StrCat(cohort.frames),
                    Fixed(cohort.mean_db, 2), Fixed(cohort.std_db, 2), Fixed(cohort.focus_db, 2),
                    StrCat(outliers), ""});
  }
  for (const std::string& line : FormatTable(rows, {false, true, true, true, true})) {
    terminal.Say(line);
  }
  if (report.slides.size() > kMaxRows) {
    terminal.Say(StrCat("... and ", report.slides.size() - kMaxRows, " more: ", report.out,
                        "/spectra.csv has all"));
  }
}

}  // namespace

StatusOr<SpectraReport> MakeSpectraReport(const protocol::JobRow& job, const Json& summary,
                                          const std::vector<std::string>& sources) {
  SpectraReport report;
  report.job = job.job;
  PB_ASSIGN_OR_RETURN(const Json* definition, JsonMember(summary, "definition", kWhat));
  report.definition = *definition;
  PB_ASSIGN_OR_RETURN(report.cohort, ParseCohort(summary));
  PB_ASSIGN_OR_RETURN(const Json* slides, JsonMember(summary, "slides", kWhat));
  for (const Json& row : *slides) {
    PB_ASSIGN_OR_RETURN(report.slides.emplace_back(), ParseSlide(row, sources));
  }
  const Outcomes outcomes = OutcomesOf(job);
  PB_ASSIGN_OR_RETURN(const Json* failed, JsonMember(summary, "failed", kWhat));
  for (const Json& row : *failed) {
    PB_ASSIGN_OR_RETURN(report.failed.emplace_back(), ParseFailure(row, sources, outcomes));
  }
  PB_ASSIGN_OR_RETURN(const Json* duplicates, JsonMember(summary, "duplicates", kWhat));
  for (const Json& row : *duplicates) {
    PB_ASSIGN_OR_RETURN(const std::int64_t source, JsonInt(row, "source_index", kWhat));
    report.duplicates.push_back(SourceName(sources, source));
  }
  PB_ASSIGN_OR_RETURN(report.plots, Texts(summary, "plots"));
  return report;
}

Json ToJson(const SpectraReport& report) {
  Json slides = Json::array(), failed = Json::array(), plots = Json::array();
  for (const MeasuredSlide& slide : report.slides) {
    slides.push_back({{"id", slide.id},
                      {"source", slide.source},
                      {"frames", slide.frames},
                      {"frames_skipped", slide.frames_skipped},
                      {"mean_db", slide.mean_db},
                      {"std_db", slide.std_db},
                      {"focus_db", slide.focus_db},
                      {"outlier", !slide.outlier_reasons.empty()},
                      {"outlier_reasons", slide.outlier_reasons},
                      {"already_there", slide.already_there}});
  }
  for (const FailedSource& failure : report.failed) {
    failed.push_back(FailureToJson(failure));
  }
  for (const std::string& plot : report.plots) plots.push_back(StrCat(report.out, "/", plot));
  Json cohort;
  if (report.cohort.has_value()) {
    cohort = {{"frames", report.cohort->frames},
              {"frames_skipped", report.cohort->frames_skipped},
              {"mean_db", report.cohort->mean_db},
              {"std_db", report.cohort->std_db},
              {"focus_db", report.cohort->focus_db}};
  }
  return {{"job", report.job},
          {"out", report.out},
          {"spectra", report.out + "/spectra.json"},
          {"seconds", report.seconds},
          {"pixel_bytes", PixelBytes(report)},
          {"bytes_per_s", BytesPerSecond(report)},
          {"definition", report.definition},
          {"cohort", cohort},
          {"slides", slides},
          {"failed", failed},
          {"duplicates", report.duplicates},
          {"passed_over", report.passed_over},
          {"plots", plots}};
}

void SayReport(Terminal& terminal, const SpectraReport& report) {
  PrintSkipped(terminal, report.passed_over);
  if (report.cohort.has_value()) {
    SayTable(terminal, report);
  } else {
    terminal.Say("no slide was measured");
  }
  std::string speed;
  if (PixelBytes(report) > 0) {
    speed = StrCat(", ", MegabytesPerSecond(BytesPerSecond(report)), " of raw pixels");
  }
  terminal.Say(StrCat("in ", HumanSeconds(report.seconds), speed, ", into ", report.out));
  if (!report.plots.empty()) terminal.Say("plots: " + StrJoin(report.plots, ", "));
  for (const std::string& duplicate : report.duplicates) {
    terminal.Note(StrCat("counted once, duplicate content: ", duplicate));
  }
  if (report.cohort.has_value() && report.cohort->frames_skipped > 0) {
    terminal.Note(StrCat(report.cohort->frames_skipped, " frames on damaged tiles are left out"));
  }
  SayFailed(terminal, report,
            report.failed.size() + report.slides.size() + report.duplicates.size());
}

}  // namespace patchbay::cli

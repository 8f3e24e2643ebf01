// The report of an analysis at its end: figures of each slide and of the cohort, failures with
// their reasons, the plots.
//
// The job "spectra" (see slide_job.h for what it shares with ingest): root task "spectra.plan" with
// the payload {"profile", "strip", "tissue_only", "skip_damaged", "coefficients", "numerics"} and,
// those of {"frame", "hop", "window", "prefilter", "channel"} not left to the profile; manifest
// {"sources", "out", "pseudonym_key"}.
// The result of its summary task, which this file reads:
//   {"definition": as in spectra.json,
//    "cohort": null or {"frames", "frames_skipped", "mean_db", "std_db", "focus_db"},
//    "slides": [{"source_index", "id", "frames", "frames_skipped", "mean_db", "std_db", "focus_db",
//                "outlier", "outlier_reasons", "pixel_bytes", "already_there"}],
//    "failed": [{"source_index", "outcome"}],       one of code 0: the job's row knows
//    "duplicates": [{"source_index", "id"}],
//    "plots": [names of files in the output folder]}
// pixel_bytes: raw pixels of level 0 that were read for the slide; 0 when already_there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/cli/terminal.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

struct MeasuredSlide {
  std::string id, source;
  std::int64_t frames = 0, frames_skipped = 0;
  double mean_db = 0, std_db = 0, focus_db = 0;
  std::vector<std::string> outlier_reasons;  ///< empty: no outlier
  std::uint64_t pixel_bytes = 0;
  bool already_there = false;
};

struct MeasuredCohort {
  std::int64_t frames = 0, frames_skipped = 0;
  double mean_db = 0, std_db = 0, focus_db = 0;
};

struct SpectraReport : SlideReport {
  Json definition;
  Json passed_over = Json::object();     ///< kind -> files in the folders that are not sources
  std::optional<MeasuredCohort> cohort;  ///< without one no slide was measured
  std::vector<MeasuredSlide> slides;
  std::vector<std::string> duplicates;  ///< sources with the content of another
  std::vector<std::string> plots;
};

/// From the job's last row and the result of its summary task. `sources` are the files in the order
/// of the job's slide numbers; a slide beyond them is called by its number.
StatusOr<SpectraReport> MakeSpectraReport(const protocol::JobRow& job, const Json& summary,
                                          const std::vector<std::string>& sources);

Json ToJson(const SpectraReport& report);
/// The table on stdout, failures on stderr.
void SayReport(Terminal& terminal, const SpectraReport& report);

}  // namespace patchbay::cli

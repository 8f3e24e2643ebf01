// The result of the summary task of an analysis of spectra, which its command reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/format/json/outcome_json.h"

namespace patchbay::results {

/// All slides together.
struct MeasuredCohort {
  std::int64_t frames = 0, frames_skipped = 0;
  double mean_db = 0, std_db = 0, focus_db = 0;

  bool operator==(const MeasuredCohort&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("frames", &MeasuredCohort::frames).Required(),
                    Field("frames_skipped", &MeasuredCohort::frames_skipped).Required(),
                    Field("mean_db", &MeasuredCohort::mean_db).Required(),
                    Field("std_db", &MeasuredCohort::std_db).Required(),
                    Field("focus_db", &MeasuredCohort::focus_db).Required());
  }
};

struct MeasuredSlide {
  std::int64_t source_index = 0;
  std::string id;
  std::int64_t frames = 0, frames_skipped = 0;
  double mean_db = 0, std_db = 0, focus_db = 0;
  bool outlier = false;
  std::vector<std::string> outlier_reasons;
  std::uint64_t pixel_bytes = 0;  ///< raw, of level 0, that were read; 0 when already_there
  bool already_there = false;

  bool operator==(const MeasuredSlide&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("source_index", &MeasuredSlide::source_index).Required(),
                    Field("id", &MeasuredSlide::id).Required(),
                    Field("frames", &MeasuredSlide::frames).Required(),
                    Field("frames_skipped", &MeasuredSlide::frames_skipped).Required(),
                    Field("mean_db", &MeasuredSlide::mean_db).Required(),
                    Field("std_db", &MeasuredSlide::std_db).Required(),
                    Field("focus_db", &MeasuredSlide::focus_db).Required(),
                    Field("outlier", &MeasuredSlide::outlier).Required(),
                    Field("outlier_reasons", &MeasuredSlide::outlier_reasons).Required(),
                    Field("pixel_bytes", &MeasuredSlide::pixel_bytes).Required(),
                    Field("already_there", &MeasuredSlide::already_there).Required());
  }
};

struct UnmeasuredSlide {
  std::int64_t source_index = 0;
  Outcome outcome;  ///< code 0: the reason is in the job's row

  bool operator==(const UnmeasuredSlide&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("source_index", &UnmeasuredSlide::source_index).Required(),
                    Field("outcome", &UnmeasuredSlide::outcome).Required());
  }
};

/// A source with the content of another.
struct DuplicateSlide {
  std::int64_t source_index = 0;
  std::string id;

  bool operator==(const DuplicateSlide&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("source_index", &DuplicateSlide::source_index).Required(),
                    Field("id", &DuplicateSlide::id).Required());
  }
};

struct SpectraSummary {
  Json definition;                       ///< as in spectra.json
  std::optional<MeasuredCohort> cohort;  ///< without one no slide was measured
  std::vector<MeasuredSlide> slides;     ///< by id
  std::vector<UnmeasuredSlide> failed;
  std::vector<DuplicateSlide> duplicates;
  std::vector<std::string> plots;  ///< names of files in the output folder

  static constexpr auto Fields() {
    return AsObject(Field("definition", &SpectraSummary::definition).Required(),
                    Field("cohort", &SpectraSummary::cohort).Required(),
                    Field("slides", &SpectraSummary::slides).Required(),
                    Field("failed", &SpectraSummary::failed).Required(),
                    Field("duplicates", &SpectraSummary::duplicates).Required(),
                    Field("plots", &SpectraSummary::plots).Required());
  }
};

}  // namespace patchbay::results

// The result of the summary task of an analysis of spectra, which its command reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/model/results/spectra_document.h"

namespace patchbay::results {

/// All slides together.
struct MeasuredCohort {
  std::int64_t frames = 0, frames_skipped = 0;
  double mean_db = 0, std_db = 0, focus_db = 0;

  bool operator==(const MeasuredCohort&) const = default;
  static constexpr auto Fields() {
    using T = MeasuredCohort;
    return AsFullObject(Field("frames", &T::frames), Field("frames_skipped", &T::frames_skipped),
                        Field("mean_db", &T::mean_db), Field("std_db", &T::std_db),
                        Field("focus_db", &T::focus_db));
  }
};

struct MeasuredSlide : MeasuredCohort {
  std::int64_t source_index = 0;
  std::string id;
  bool outlier = false;
  std::vector<std::string> outlier_reasons;
  std::uint64_t pixel_bytes = 0;  ///< raw, of level 0, that were read; 0 when already_there
  bool already_there = false;

  bool operator==(const MeasuredSlide&) const = default;
  static constexpr auto Fields() {
    using T = MeasuredSlide;
    return Extending<MeasuredCohort>(AsFullObject(
        Field("source_index", &T::source_index), Field("id", &T::id), Field("outlier", &T::outlier),
        Field("outlier_reasons", &T::outlier_reasons), Field("pixel_bytes", &T::pixel_bytes),
        Field("already_there", &T::already_there)));
  }
};

struct UnmeasuredSlide {
  std::int64_t source_index = 0;
  Outcome outcome;  ///< code 0: the reason is in the job's row

  bool operator==(const UnmeasuredSlide&) const = default;
  static constexpr auto Fields() {
    return AsFullObject(Field("source_index", &UnmeasuredSlide::source_index),
                        Field("outcome", &UnmeasuredSlide::outcome));
  }
};

struct SpectraSummary {
  SpectraDefinition definition;
  std::optional<MeasuredCohort> cohort;  ///< without one no slide was measured
  std::vector<MeasuredSlide> slides;     ///< by id
  std::vector<UnmeasuredSlide> failed;
  std::vector<SpectraDuplicate> duplicates;
  std::vector<std::string> plots;  ///< names of files in the output folder

  static constexpr auto Fields() {
    using T = SpectraSummary;
    return AsFullObject(Field("definition", &T::definition), Field("cohort", &T::cohort),
                        Field("slides", &T::slides), Field("failed", &T::failed),
                        Field("duplicates", &T::duplicates), Field("plots", &T::plots));
  }
};

}  // namespace patchbay::results

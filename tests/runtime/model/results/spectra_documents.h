// Documents like those that `patchbay spectra` writes, for tests of those who read them.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/format/json/json.h"

namespace patchbay::results {

inline constexpr int kDocumentFrame = 64;

/// Figures of `spectra` spectra of levels around `mean_db`, as wide as `std_db`.
inline Json MadeFigures(double mean_db, double std_db, std::int64_t spectra, double step) {
  const std::int64_t total = spectra * kDocumentFrame * kDocumentFrame;
  std::vector<std::uint64_t> counts(640, 0);
  std::int64_t left = total;
  for (std::size_t i = 0; i < counts.size() && left > 0; ++i) {
    const double at = (0.25 * (static_cast<double>(i) + 0.5) - mean_db) / std_db;
    const double share = 0.25 / (std_db * 2.5066282746) * std::exp(-at * at / 2);
    counts[i] = static_cast<std::uint64_t>(std::min<std::int64_t>(
        left, static_cast<std::int64_t>(share * static_cast<double>(total))));
    left -= static_cast<std::int64_t>(counts[i]);
  }
  counts[0] += static_cast<std::uint64_t>(left);
  Json percentiles;
  const char* const names[] = {"p1", "p5", "p25", "p50", "p75", "p95", "p99"};
  const double places[] = {-2.326, -1.645, -0.674, 0, 0.674, 1.645, 2.326};
  for (std::size_t i = 0; i < 7; ++i) {
    percentiles[names[i]] = std::max(0.0, mean_db + places[i] * std_db);
  }
  std::vector<double> power;
  for (int k = 1; k <= kDocumentFrame / 2; ++k) {
    power.push_back(std::pow(10, mean_db / 10) / (k * static_cast<double>(k)));
  }
  return {{"mean_db", mean_db},
          {"std_db", std_db},
          {"focus_db", -20 + mean_db / 10},
          {"percentiles", percentiles},
          {"histogram", {{"low_db", 0}, {"bin_db", 0.25}, {"counts", counts}}},
          {"radial",
           {{"unit", step == 1.0 / kDocumentFrame ? "cycles/pixel" : "cycles/um"},
            {"frequency_step", step},
            {"power", power}}}};
}

struct DocumentOptions {
  bool rgb = false, mpp = true;
  int outlier = -1;  ///< this slide is blurred
};

inline Json MadePart(double mean_db, double std_db, std::int64_t frames,
                     const DocumentOptions& options) {
  const double step = 1.0 / kDocumentFrame / (options.mpp ? 0.5 : 1.0);
  Json part = MadeFigures(mean_db, std_db, options.rgb ? 3 * frames : frames, step);
  part["frames"] = frames;
  part["frames_skipped"] = 0;
  part["frames_off_tissue"] = 0;
  part["mpp"] = options.mpp ? Json(0.5) : Json();
  if (!options.rgb) return part;
  double shift = -1;
  for (const char* channel : {"red", "green", "blue"}) {
    part["channels"][channel] = MadeFigures(mean_db + shift, std_db, frames, step);
    shift += 1;
  }
  return part;
}

/// Slides of 10 frames with means 40 dB + `spread_db` * slide.
inline Json MadeDocument(int slides, double spread_db = 0.1, const DocumentOptions& options = {}) {
  Json document = {{"version", 1},
                   {"definition",
                    {{"version", 1},
                     {"profile", "custom"},
                     {"frame", kDocumentFrame},
                     {"hop", kDocumentFrame / 2},
                     {"window", "rect"},
                     {"prefilter", "none"},
                     {"channel", options.rgb ? "rgb" : "grey"},
                     {"tissue_only", false},
                     {"skip_damaged", false},
                     {"numerics", "cpu"},
                     {"level", 0},
                     {"floor_db", 0},
                     {"step_db", 1.0 / 1024}}},
                   {"slides", Json::array()},
                   {"cohort", nullptr},
                   {"failed", Json::array()},
                   {"duplicates", Json::array()}};
  for (int i = 0; i < slides; ++i) {
    const bool outlier = i == options.outlier;
    Json slide = MadePart(40 + spread_db * i, 10, 10, options);
    std::string id = std::to_string(i);
    slide["id"] = std::string(16 - id.size(), '0') + id;
    slide["width"] = 1000;
    slide["height"] = 900;
    slide["remainder"] = {{"right", 1}, {"bottom", 2}};
    slide["outlier"] = outlier;
    slide["outlier_reasons"] = Json::array();
    if (outlier) {
      slide["outlier_reasons"].push_back("focus low");
      slide["focus_db"] = -60;
    }
    document["slides"].push_back(slide);
  }
  if (slides == 0) return document;
  document["cohort"] = MadePart(40 + spread_db * (slides - 1) / 2, 10, 10 * slides, options);
  document["cohort"]["slides"] = slides;
  document["cohort"]["outliers"] = Json::array();
  return document;
}

}  // namespace patchbay::results

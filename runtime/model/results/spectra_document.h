// spectra.json as values (configs/spectra.md has the schema), checked as a file that anybody may
// have written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::results {

inline constexpr std::int64_t kSpectraVersion = 1;
/// Most bytes of a file: a slide takes about 6 KiB, four times that with channels.
inline constexpr std::size_t kMaxSpectraBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxSpectraSlides = 100'000;
inline constexpr std::size_t kMaxSpectraBins = 4096;
inline constexpr std::array<const char*, 7> kSpectraPercentiles = {"p1",  "p5",  "p25", "p50",
                                                                   "p75", "p95", "p99"};

/// The definition of the measurement. Two documents are comparable when all but profile,
/// skip_damaged and numerics are equal.
struct SpectraDefinition {
  std::int64_t version = 0;
  std::string profile;
  std::int64_t frame = 0, hop = 0;  ///< pixels
  std::string window, prefilter, channel;
  bool tissue_only = false, skip_damaged = false;
  Json tissue;  ///< null unless tissue_only
  std::string numerics;
  std::int64_t level = 0;
  double floor_db = 0, step_db = 0;
};

/// All histograms of one document have the same bins.
struct SpectraHistogram {
  double low_db = 0, bin_db = 0;
  std::vector<std::uint64_t> counts;
  std::uint64_t total = 0;  ///< of counts, above 0

  bool SameBins(const SpectraHistogram& other) const {
    return low_db == other.low_db && bin_db == other.bin_db && counts.size() == other.counts.size();
  }
};

struct SpectraRadial {
  std::string unit;           ///< "cycles/um" or "cycles/pixel"
  double frequency_step = 0;  ///< power[i] lies at (i + 1) times this; the last at Nyquist
  std::vector<double> power;  ///< at least 0
};

/// The figures of some coefficients.
struct SpectraFigures {
  double mean_db = 0, std_db = 0, focus_db = 0;
  std::array<double, kSpectraPercentiles.size()> percentiles{};
  SpectraHistogram histogram;
  SpectraRadial radial;
};

/// A slide's or the cohort's.
struct SpectraPart {
  std::int64_t frames = 0, frames_skipped = 0, frames_off_tissue = 0;
  std::optional<double> mpp;
  SpectraFigures all;
  std::vector<SpectraFigures> channels;  ///< red, green, blue; empty unless channel is "rgb"
};

struct SpectraSlide {
  std::string id;
  std::string origin;  ///< id of the slide that a store was made from; of a slide its own id
  SpectraPart part;
  std::vector<std::string> outlier_reasons;  ///< empty: no outlier
};

struct SpectraDocument {
  SpectraDefinition definition;
  std::vector<SpectraSlide> slides;   ///< by id
  std::optional<SpectraPart> cohort;  ///< none when there is no slide
  std::size_t failed = 0, duplicates = 0;
};

/// InvalidArgument names `what` and the member that violates the schema.
StatusOr<SpectraDocument> ParseSpectraDocument(const Json& document, std::string_view what);

/// Reads a file. InvalidArgument when it is larger than kMaxSpectraBytes.
StatusOr<SpectraDocument> ReadSpectraDocument(const Folders& allowed, const std::string& path);

}  // namespace patchbay::results

// spectra.json as values (configs/spectra.md has the schema), written by the job, and checked when
// read as a file that anybody may have written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::results {

inline constexpr std::int64_t kSpectraVersion = 1;
/// Most bytes of a file: a slide takes about 6 KiB, four times that with channels.
inline constexpr std::size_t kMaxSpectraBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxSpectraSlides = 100'000;
inline constexpr std::size_t kMaxSpectraBins = 4096;
inline constexpr std::int64_t kMinSpectraFrame = 32, kMaxSpectraFrame = 4096;
inline constexpr double kMaxSpectraDb = 1000;  ///< far above any level of an 8-bit image

/// The definition of the measurement. Two documents are comparable when all but profile,
/// skip_damaged and numerics are equal.
struct SpectraDefinition {
  std::int64_t version = 0;
  std::string profile;
  std::int64_t frame = 0, hop = 0;  ///< pixels
  std::string window, prefilter, channel;
  bool tissue_only = false, skip_damaged = false;
  Json tissue = nullptr;  ///< null unless tissue_only
  std::string numerics;
  int level = 0, floor_db = 0;
  double step_db = 0;

  bool operator==(const SpectraDefinition&) const = default;
  static constexpr auto Fields() {
    using T = SpectraDefinition;
    return AsObject(
        Field("version", &T::version).Required().Within(1, 2147483647),
        Field("profile", &T::profile).Required(),
        Field("frame", &T::frame).Required().Within(kMinSpectraFrame, kMaxSpectraFrame),
        Field("hop", &T::hop).Required().Within(1, kMaxSpectraFrame),
        Field("window", &T::window).Required(), Field("prefilter", &T::prefilter).Required(),
        Field("channel", &T::channel).Required(), Field("tissue_only", &T::tissue_only).Required(),
        Field("skip_damaged", &T::skip_damaged).Required(), Field("tissue", &T::tissue),
        Field("numerics", &T::numerics).Required(),
        Field("level", &T::level).Required().Within(0, 63),
        Field("floor_db", &T::floor_db).Required().Within(-kMaxSpectraDb, kMaxSpectraDb),
        Field("step_db", &T::step_db).Required().Within(0, kMaxSpectraDb));
  }
};

/// The levels below which so many percent of the coefficients lie.
struct SpectraPercentiles {
  double p1 = 0, p5 = 0, p25 = 0, p50 = 0, p75 = 0, p95 = 0, p99 = 0;

  std::array<double, 7> Values() const { return {p1, p5, p25, p50, p75, p95, p99}; }
  static constexpr auto Fields() {
    using T = SpectraPercentiles;
    return AsFullObject(Field("p1", &T::p1), Field("p5", &T::p5), Field("p25", &T::p25),
                        Field("p50", &T::p50), Field("p75", &T::p75), Field("p95", &T::p95),
                        Field("p99", &T::p99));
  }
};

/// All histograms of one document have the same bins.
struct SpectraHistogram {
  int low_db = 0;
  double bin_db = 0;
  std::vector<std::uint64_t> counts;

  std::uint64_t Total() const;  ///< above 0
  bool SameBins(const SpectraHistogram& other) const {
    return low_db == other.low_db && bin_db == other.bin_db && counts.size() == other.counts.size();
  }
  static constexpr auto Fields() {
    using T = SpectraHistogram;
    return AsFullObject(Field("low_db", &T::low_db).Within(-kMaxSpectraDb, kMaxSpectraDb),
                        Field("bin_db", &T::bin_db).Within(1e-3, kMaxSpectraDb),
                        Field("counts", &T::counts).Counted(0, kMaxSpectraBins));
  }
};

struct SpectraRadial {
  std::string unit;           ///< "cycles/um" or "cycles/pixel"
  double frequency_step = 0;  ///< power[i] lies at (i + 1) times this; the last at Nyquist
  std::vector<double> power;

  static constexpr auto Fields() {
    using T = SpectraRadial;
    return AsFullObject(Field("unit", &T::unit),
                        Field("frequency_step", &T::frequency_step).Within(1e-12, 1e12),
                        Field("power", &T::power).Within(0, 1e30));
  }
};

/// The figures of some coefficients.
struct SpectraFigures {
  double mean_db = 0, std_db = 0, focus_db = 0;
  SpectraPercentiles percentiles;
  SpectraHistogram histogram;
  SpectraRadial radial;

  static constexpr auto Fields() {
    using T = SpectraFigures;
    return AsFullObject(Field("mean_db", &T::mean_db).Within(-kMaxSpectraDb, kMaxSpectraDb),
                        Field("std_db", &T::std_db).Within(0, kMaxSpectraDb),
                        Field("focus_db", &T::focus_db).Within(-kMaxSpectraDb, kMaxSpectraDb),
                        Field("percentiles", &T::percentiles).Within(-kMaxSpectraDb, kMaxSpectraDb),
                        Field("histogram", &T::histogram), Field("radial", &T::radial));
  }
};

struct SpectraChannels {
  SpectraFigures red, green, blue;

  static constexpr auto Fields() {
    using T = SpectraChannels;
    return AsFullObject(Field("red", &T::red), Field("green", &T::green), Field("blue", &T::blue));
  }
};

/// A slide's or the cohort's figures: those of all channels together.
struct SpectraPart : SpectraFigures {
  std::int64_t frames = 0, frames_skipped = 0, frames_off_tissue = 0;
  std::optional<double> mpp;
  std::optional<SpectraChannels> channels;  ///< none unless channel is "rgb"

  /// Red, green, blue, or none. Valid as long as the part.
  std::vector<const SpectraFigures*> Channels() const;
  static constexpr auto Fields() {
    using T = SpectraPart;
    constexpr double kMost = std::int64_t{1} << 48;
    return Extending<SpectraFigures>(AsObject(
        Field("frames", &T::frames).Required().Within(1, kMost),
        Field("frames_skipped", &T::frames_skipped).Required().Within(0, kMost),
        Field("frames_off_tissue", &T::frames_off_tissue).Required().Within(0, kMost),
        Field("mpp", &T::mpp).Required().Within(1e-6, 1e6), Field("channels", &T::channels)));
  }
};

/// Pixels beyond the last whole frame.
struct SpectraRemainder {
  std::int64_t right = 0, bottom = 0;

  bool operator==(const SpectraRemainder&) const = default;
  static constexpr auto Fields() {
    return AsFullObject(Field("right", &SpectraRemainder::right),
                        Field("bottom", &SpectraRemainder::bottom));
  }
};

struct SpectraSlide : SpectraPart {
  std::string id;
  std::string origin;  ///< id of the slide that a store was made from; of a slide its own id
  std::int64_t width = 0, height = 0;
  SpectraRemainder remainder;
  bool outlier = false;
  std::vector<std::string> outlier_reasons;  ///< empty: no outlier

  static constexpr auto Fields() {
    using T = SpectraSlide;
    return Extending<SpectraPart>(AsObject(
        Field("id", &T::id).Required(), Field("origin", &T::origin),
        Field("width", &T::width).Required(), Field("height", &T::height).Required(),
        Field("remainder", &T::remainder).Required(), Field("outlier", &T::outlier).Required(),
        Field("outlier_reasons", &T::outlier_reasons).Required().Counted(0, 16)));
  }
};

struct SpectraCohort : SpectraPart {
  std::int64_t slides = 0;
  std::vector<std::string> outliers;  ///< ids

  static constexpr auto Fields() {
    return Extending<SpectraPart>(AsFullObject(Field("slides", &SpectraCohort::slides),
                                               Field("outliers", &SpectraCohort::outliers)));
  }
};

/// A slide that was left out.
struct SpectraFailure {
  std::int64_t index = 0;         ///< row of manifest.csv
  std::optional<std::string> id;  ///< none where the file could not be read whole
  std::string reason;             ///< names no path

  static constexpr auto Fields() {
    using T = SpectraFailure;
    return AsFullObject(Field("index", &T::index), Field("id", &T::id),
                        Field("reason", &T::reason));
  }
};

/// A source with the content of another.
struct SpectraDuplicate {
  std::int64_t index = 0;  ///< row of manifest.csv
  std::string id;

  bool operator==(const SpectraDuplicate&) const = default;
  static constexpr auto Fields() {
    return AsFullObject(Field("index", &SpectraDuplicate::index),
                        Field("id", &SpectraDuplicate::id));
  }
};

struct SpectraDocument {
  std::int64_t version = kSpectraVersion;
  SpectraDefinition definition;
  std::vector<SpectraSlide> slides;     ///< by id
  std::optional<SpectraCohort> cohort;  ///< none when there is no slide
  std::vector<SpectraFailure> failed;
  std::vector<SpectraDuplicate> duplicates;

  static constexpr auto Fields() {
    using T = SpectraDocument;
    return AsFullObject(Field("version", &T::version).Within(kSpectraVersion, kSpectraVersion),
                        Field("definition", &T::definition),
                        Field("slides", &T::slides).Counted(0, kMaxSpectraSlides),
                        Field("cohort", &T::cohort),
                        Field("failed", &T::failed).Counted(0, kMaxSpectraSlides),
                        Field("duplicates", &T::duplicates).Counted(0, kMaxSpectraSlides));
  }
};

/// InvalidArgument names `what` and the member that violates the schema.
StatusOr<SpectraDocument> ParseSpectraDocument(const Json& document, std::string_view what);

/// Reads a file. InvalidArgument when it is larger than kMaxSpectraBytes.
StatusOr<SpectraDocument> ReadSpectraDocument(const Folders& allowed, const std::string& path);

}  // namespace patchbay::results

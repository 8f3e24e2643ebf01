#include "runtime/model/results/spectra_document.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/numeric/int128.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_error.h"
#include "runtime/os/file.h"

namespace patchbay::results {
namespace {

constexpr std::int64_t kMinFrame = 32, kMaxFrame = 4096;
constexpr std::size_t kMaxIdBytes = 256, kMaxReasons = 16, kMaxReasonBytes = 64;
constexpr double kMaxDb = 1000;  ///< far above any level of an 8-bit image
constexpr double kMaxPower = 1e30, kMaxMpp = 1e6;
constexpr std::array<const char*, 3> kChannels = {"red", "green", "blue"};

Status Wrong(std::string_view what, std::string_view cause) {
  return InvalidArgument(what, ": ", cause);
}

StatusOr<double> Number(const Json& object, const char* key, double low, double high,
                        std::string_view what) {
  PB_ASSIGN_OR_RETURN(const double value, JsonDouble(object, key, what));
  if (!std::isfinite(value) || value < low || value > high) {
    return Wrong(what, StrCat(key, ": ", value, " is not in ", low, "..", high));
  }
  return value;
}

StatusOr<std::int64_t> Whole(const Json& object, const char* key, std::int64_t low,
                             std::int64_t high, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const std::int64_t value, JsonInt(object, key, what));
  if (value < low || value > high) {
    return Wrong(what, StrCat(key, ": ", value, " is not in ", low, "..", high));
  }
  return value;
}

/// Text of printable ASCII, so that it may go to a terminal.
StatusOr<std::string> Text(const Json& value, std::size_t max_bytes, std::string_view what) {
  if (!value.is_string()) return Wrong(what, "not text");
  std::string text = value.get<std::string>();
  if (text.empty() || text.size() > max_bytes) {
    return Wrong(what, StrCat("expected 1 to ", max_bytes, " characters"));
  }
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
    return Wrong(what, "not printable ASCII");
  }
  return text;
}

StatusOr<std::string> TextMember(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  return Text(*member, kMaxReasonBytes, StrCat(what, ": ", key));
}

StatusOr<const Json*> List(const Json& object, const char* key, std::size_t max,
                           std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_array()) return Wrong(what, StrCat(key, ": not a list"));
  if (member->size() > max) {
    return Wrong(what, StrCat(key, ": ", member->size(), " entries, more than ", max));
  }
  return member;
}

StatusOr<SpectraDefinition> ParseDefinition(const Json& document, std::string_view file) {
  PB_ASSIGN_OR_RETURN(const Json* json, JsonMember(document, "definition", file));
  const std::string what = StrCat(file, ": definition");
  SpectraDefinition d;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PB_ASSIGN_OR_RETURN(d.version, Whole(*json, "version", 1, kMost, what));
  PB_ASSIGN_OR_RETURN(d.profile, TextMember(*json, "profile", what));
  PB_ASSIGN_OR_RETURN(d.frame, Whole(*json, "frame", kMinFrame, kMaxFrame, what));
  PB_ASSIGN_OR_RETURN(d.hop, Whole(*json, "hop", 1, kMaxFrame, what));
  PB_ASSIGN_OR_RETURN(d.window, TextMember(*json, "window", what));
  PB_ASSIGN_OR_RETURN(d.prefilter, TextMember(*json, "prefilter", what));
  PB_ASSIGN_OR_RETURN(d.channel, TextMember(*json, "channel", what));
  PB_ASSIGN_OR_RETURN(d.tissue_only, JsonBool(*json, "tissue_only", what));
  PB_ASSIGN_OR_RETURN(d.skip_damaged, JsonBool(*json, "skip_damaged", what));
  PB_ASSIGN_OR_RETURN(d.numerics, TextMember(*json, "numerics", what));
  PB_ASSIGN_OR_RETURN(d.level, Whole(*json, "level", 0, 63, what));
  PB_ASSIGN_OR_RETURN(d.floor_db, Number(*json, "floor_db", -kMaxDb, kMaxDb, what));
  PB_ASSIGN_OR_RETURN(d.step_db, Number(*json, "step_db", 0, kMaxDb, what));
  if (d.tissue_only && json->contains("tissue")) d.tissue = (*json)["tissue"];
  return d;
}

StatusOr<SpectraHistogram> ParseHistogram(const Json& object, std::string_view around) {
  PB_ASSIGN_OR_RETURN(const Json* json, JsonMember(object, "histogram", around));
  const std::string what = StrCat(around, ": histogram");
  SpectraHistogram histogram;
  PB_ASSIGN_OR_RETURN(histogram.low_db, Number(*json, "low_db", -kMaxDb, kMaxDb, what));
  PB_ASSIGN_OR_RETURN(histogram.bin_db, Number(*json, "bin_db", 1e-3, kMaxDb, what));
  PB_ASSIGN_OR_RETURN(const Json* counts, List(*json, "counts", kMaxSpectraBins, what));
  for (const Json& count : *counts) {
    const bool negative =
        !count.is_number_unsigned() && count.is_number_integer() && count.get<std::int64_t>() < 0;
    const bool whole = count.is_number_integer() && !negative;
    // A count that a 63-bit total could not hold is not a count of coefficients.
    if (!whole || count.get<std::uint64_t>() > INT64_MAX - histogram.total) {
      return Wrong(what, "counts: not counts of coefficients");
    }
    histogram.counts.push_back(count.get<std::uint64_t>());
    histogram.total += histogram.counts.back();
  }
  return histogram;
}

StatusOr<SpectraRadial> ParseRadial(const Json& object, std::int64_t frame,
                                    std::string_view around) {
  PB_ASSIGN_OR_RETURN(const Json* json, JsonMember(object, "radial", around));
  const std::string what = StrCat(around, ": radial");
  SpectraRadial radial;
  PB_ASSIGN_OR_RETURN(radial.unit, TextMember(*json, "unit", what));
  if (radial.unit != "cycles/um" && radial.unit != "cycles/pixel") {
    return Wrong(what, StrCat("unit: '", radial.unit, "' is neither cycles/um nor cycles/pixel"));
  }
  PB_ASSIGN_OR_RETURN(radial.frequency_step, Number(*json, "frequency_step", 1e-12, 1e12, what));
  PB_ASSIGN_OR_RETURN(const Json* power, List(*json, "power", kMaxFrame / 2, what));
  if (static_cast<std::int64_t>(power->size()) != frame / 2) {
    return Wrong(what, StrCat("power: ", power->size(), " rings, not ", frame / 2));
  }
  for (const Json& value : *power) {
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kMaxPower) {
      return Wrong(what, "power: not a list of numbers of at least 0");
    }
    radial.power.push_back(value.get<double>());
  }
  return radial;
}

/// `spectra`: how many spectra each frame gave, 1 or 3.
StatusOr<SpectraFigures> ParseFigures(const Json& json, std::int64_t frame, std::int64_t frames,
                                      int spectra, std::string_view what) {
  SpectraFigures figures;
  PB_ASSIGN_OR_RETURN(figures.mean_db, Number(json, "mean_db", -kMaxDb, kMaxDb, what));
  PB_ASSIGN_OR_RETURN(figures.std_db, Number(json, "std_db", 0, kMaxDb, what));
  PB_ASSIGN_OR_RETURN(figures.focus_db, Number(json, "focus_db", -kMaxDb, kMaxDb, what));
  PB_ASSIGN_OR_RETURN(const Json* percentiles, JsonMember(json, "percentiles", what));
  for (std::size_t i = 0; i < kSpectraPercentiles.size(); ++i) {
    PB_ASSIGN_OR_RETURN(figures.percentiles[i],
                        Number(*percentiles, kSpectraPercentiles[i], -kMaxDb, kMaxDb,
                               StrCat(what, ": percentiles")));
  }
  PB_ASSIGN_OR_RETURN(figures.histogram, ParseHistogram(json, what));
  const absl::uint128 expected = absl::uint128(static_cast<std::uint64_t>(frames)) *
                                 static_cast<std::uint64_t>(frame * frame) *
                                 static_cast<std::uint64_t>(spectra);
  if (absl::uint128(figures.histogram.total) != expected) {
    return Wrong(
        what, StrCat("histogram: counts: they sum to ", figures.histogram.total, ", which ", frames,
                     " frames of ", frame, " x ", frame, " cannot have"));
  }
  PB_ASSIGN_OR_RETURN(figures.radial, ParseRadial(json, frame, what));
  return figures;
}

StatusOr<SpectraPart> ParsePart(const Json& json, const SpectraDefinition& definition,
                                std::string_view what) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  SpectraPart part;
  PB_ASSIGN_OR_RETURN(part.frames, Whole(json, "frames", 1, kMost, what));
  PB_ASSIGN_OR_RETURN(part.frames_skipped, Whole(json, "frames_skipped", 0, kMost, what));
  PB_ASSIGN_OR_RETURN(part.frames_off_tissue, Whole(json, "frames_off_tissue", 0, kMost, what));
  PB_ASSIGN_OR_RETURN(const Json* mpp, JsonMember(json, "mpp", what));
  if (!mpp->is_null()) {
    PB_ASSIGN_OR_RETURN(part.mpp, Number(json, "mpp", 1e-6, kMaxMpp, what));
  }
  const bool rgb = definition.channel == "rgb";
  PB_ASSIGN_OR_RETURN(part.all,
                      ParseFigures(json, definition.frame, part.frames, rgb ? 3 : 1, what));
  if (!rgb) return part;
  PB_ASSIGN_OR_RETURN(const Json* channels, JsonMember(json, "channels", what));
  for (const char* name : kChannels) {
    PB_ASSIGN_OR_RETURN(const Json* channel, JsonMember(*channels, name, what));
    PB_ASSIGN_OR_RETURN(part.channels.emplace_back(),
                        ParseFigures(*channel, definition.frame, part.frames, 1,
                                     StrCat(what, ": channels: ", name)));
  }
  return part;
}

StatusOr<SpectraSlide> ParseSlide(const Json& json, const SpectraDefinition& definition,
                                  const std::string& what) {
  SpectraSlide slide;
  PB_ASSIGN_OR_RETURN(const Json* id, JsonMember(json, "id", what));
  PB_ASSIGN_OR_RETURN(slide.id, Text(*id, kMaxIdBytes, StrCat(what, ": id")));
  // Documents of earlier versions do not have it.
  const Json origin = json.value("origin", *id);
  PB_ASSIGN_OR_RETURN(slide.origin, Text(origin, kMaxIdBytes, StrCat(what, ": origin")));
  PB_ASSIGN_OR_RETURN(slide.part, ParsePart(json, definition, what));
  PB_ASSIGN_OR_RETURN(const bool outlier, JsonBool(json, "outlier", what));
  PB_ASSIGN_OR_RETURN(const Json* reasons, List(json, "outlier_reasons", kMaxReasons, what));
  if (outlier != !reasons->empty()) {
    return Wrong(what, "outlier: it does not go with outlier_reasons");
  }
  for (const Json& reason : *reasons) {
    PB_ASSIGN_OR_RETURN(slide.outlier_reasons.emplace_back(),
                        Text(reason, kMaxReasonBytes, StrCat(what, ": outlier_reasons")));
  }
  return slide;
}

Status ParseSlides(const Json& document, std::string_view file, SpectraDocument& result) {
  PB_ASSIGN_OR_RETURN(const Json* slides, List(document, "slides", kMaxSpectraSlides, file));
  for (std::size_t i = 0; i < slides->size(); ++i) {
    PB_ASSIGN_OR_RETURN(
        result.slides.emplace_back(),
        ParseSlide((*slides)[i], result.definition, StrCat(file, ": slides[", i, "]")));
  }
  std::sort(result.slides.begin(), result.slides.end(),
            [](const SpectraSlide& a, const SpectraSlide& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < result.slides.size(); ++i) {
    if (result.slides[i].id == result.slides[i - 1].id) {
      return Wrong(file, StrCat("slides: id ", result.slides[i].id, " is listed twice"));
    }
  }
  return absl::OkStatus();
}

/// All histograms of an analysis have the same bins: comparisons and pictures rely on it.
Status CheckBins(const SpectraDocument& document, std::string_view file) {
  if (!document.cohort.has_value()) return absl::OkStatus();
  const SpectraHistogram& first = document.cohort->all.histogram;
  const auto check = [&](const SpectraPart& part, const std::string& what) -> Status {
    std::vector<const SpectraHistogram*> histograms = {&part.all.histogram};
    for (const SpectraFigures& channel : part.channels) histograms.push_back(&channel.histogram);
    for (const SpectraHistogram* histogram : histograms) {
      if (!histogram->SameBins(first)) return Wrong(what, "histogram: not the cohort's bins");
    }
    return absl::OkStatus();
  };
  PB_RETURN_IF_ERROR(check(*document.cohort, StrCat(file, ": cohort")));
  for (const SpectraSlide& slide : document.slides) {
    PB_RETURN_IF_ERROR(check(slide.part, StrCat(file, ": slide ", slide.id)));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<SpectraDocument> ParseSpectraDocument(const Json& document, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const std::int64_t version, JsonInt(document, "version", what));
  if (version != kSpectraVersion) {
    return Wrong(what, StrCat("version: ", version, " is not ", kSpectraVersion));
  }
  SpectraDocument result;
  PB_ASSIGN_OR_RETURN(result.definition, ParseDefinition(document, what));
  PB_RETURN_IF_ERROR(ParseSlides(document, what, result));
  PB_ASSIGN_OR_RETURN(const Json* cohort, JsonMember(document, "cohort", what));
  if (cohort->is_null() != result.slides.empty()) {
    return Wrong(what, "cohort: must be null if there is no slide, and only then");
  }
  if (!cohort->is_null()) {
    PB_ASSIGN_OR_RETURN(result.cohort,
                        ParsePart(*cohort, result.definition, StrCat(what, ": cohort")));
  }
  PB_RETURN_IF_ERROR(CheckBins(result, what));
  PB_ASSIGN_OR_RETURN(const Json* failed, List(document, "failed", kMaxSpectraSlides, what));
  PB_ASSIGN_OR_RETURN(const Json* duplicates,
                      List(document, "duplicates", kMaxSpectraSlides, what));
  result.failed = failed->size();
  result.duplicates = duplicates->size();
  return result;
}

StatusOr<SpectraDocument> ReadSpectraDocument(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(allowed, path, kMaxSpectraBytes));
  const StatusOr<Json> document = ParseJson(text, path, kMaxSpectraBytes);
  if (!document.ok()) {
    return Wrong(
        path, StrCat("not a result of `patchbay spectra`: ", JsonCause(document.status(), path)));
  }
  return ParseSpectraDocument(*document, path);
}

}  // namespace patchbay::results

#include "runtime/model/results/spectra_document.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/numeric/int128.h"
#include "runtime/core/other_version.h"
#include "runtime/core/outcome.h"
#include "runtime/core/printable.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/json/json_error.h"
#include "runtime/os/file.h"

namespace patchbay::results {
namespace {

constexpr std::size_t kMaxIdBytes = 256, kMaxTextBytes = 64;

Status Wrong(std::string_view what, std::string_view cause) {
  return InvalidArgument(what, ": ", cause);
}

/// Text of printable ASCII may go to a terminal.
Status CheckText(const std::string& text, std::size_t max_bytes, std::string_view what) {
  if (text.empty() || text.size() > max_bytes) {
    return Wrong(what, StrCat("expected 1 to ", max_bytes, " characters"));
  }
  const bool is_printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_printable ? absl::OkStatus() : Wrong(what, "not printable ASCII");
}

Status CheckDefinition(const SpectraDefinition& d, std::string_view what) {
  using Text = std::pair<const char*, const std::string&>;
  for (const auto& [key, text] :
       {Text{"profile", d.profile}, Text{"window", d.window}, Text{"prefilter", d.prefilter},
        Text{"channel", d.channel}, Text{"numerics", d.numerics}}) {
    PB_RETURN_IF_ERROR(CheckText(text, kMaxTextBytes, StrCat(what, ": definition: ", key)));
  }
  return absl::OkStatus();
}

/// `spectra`: how many spectra each frame gave, 1 or 3.
Status CheckFigures(const SpectraFigures& figures, const SpectraDocument& document,
                    std::int64_t frames, unsigned spectra, std::string_view what) {
  const std::int64_t frame = document.definition.frame;
  absl::uint128 total = 0;
  for (const std::uint64_t count : figures.histogram.counts) total += count;
  const absl::uint128 expected = absl::uint128(frames) * static_cast<unsigned>(frame * frame);
  if (total != expected * spectra || total > INT64_MAX) {
    return Wrong(what,
                 StrCat("histogram: counts: they sum to ", static_cast<double>(total), ", which ",
                        frames, " frames of ", frame, " x ", frame, " cannot have"));
  }
  // Comparisons and pictures rely on it.
  if (document.cohort && !figures.histogram.SameBins(document.cohort->histogram)) {
    return Wrong(what, "histogram: not the cohort's bins");
  }
  const SpectraRadial& radial = figures.radial;
  if (radial.unit != "cycles/um" && radial.unit != "cycles/pixel") {
    return Wrong(what, StrCat("radial: unit: '", Printable(radial.unit),
                              "' is neither cycles/um nor cycles/pixel"));
  }
  if (static_cast<std::int64_t>(radial.power.size()) == frame / 2) return absl::OkStatus();
  return Wrong(what, StrCat("radial: power: ", radial.power.size(), " rings, not ", frame / 2));
}

Status CheckPart(const SpectraPart& part, const SpectraDocument& document, std::string_view what) {
  const bool rgb = document.definition.channel == "rgb";
  if (part.channels.has_value() != rgb) {
    return Wrong(what, "channels: they do not go with the definition's channel");
  }
  PB_RETURN_IF_ERROR(CheckFigures(part, document, part.frames, rgb ? 3 : 1, what));
  for (const SpectraFigures* channel : part.Channels()) {
    PB_RETURN_IF_ERROR(
        CheckFigures(*channel, document, part.frames, 1, StrCat(what, ": channels")));
  }
  return absl::OkStatus();
}

Status CheckSlide(const SpectraSlide& slide, const SpectraDocument& document,
                  const std::string& what) {
  PB_RETURN_IF_ERROR(CheckText(slide.id, kMaxIdBytes, StrCat(what, ": id")));
  PB_RETURN_IF_ERROR(CheckText(slide.origin, kMaxIdBytes, StrCat(what, ": origin")));
  if (slide.outlier == slide.outlier_reasons.empty()) {
    return Wrong(what, "outlier: it does not go with outlier_reasons");
  }
  for (const std::string& reason : slide.outlier_reasons) {
    PB_RETURN_IF_ERROR(CheckText(reason, kMaxTextBytes, StrCat(what, ": outlier_reasons")));
  }
  return CheckPart(slide, document, what);
}

}  // namespace

std::uint64_t SpectraHistogram::Total() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::vector<const SpectraFigures*> SpectraPart::Channels() const {
  if (!channels) return {};
  return {&channels->red, &channels->green, &channels->blue};
}

StatusOr<SpectraDocument> ParseSpectraDocument(const Json& json, std::string_view what) {
  const auto version = JsonInt(json, "version", what);
  if (version.ok() && *version != kSpectraVersion) {
    return Wrong(what, OtherVersion(*version, kSpectraVersion, "run `patchbay spectra` again"));
  }
  PB_ASSIGN_OR_RETURN(auto document, FromJson<SpectraDocument>(json, what, UnknownKeys::kSkipped));
  std::vector<SpectraSlide>& slides = document.slides;
  PB_RETURN_IF_ERROR(CheckDefinition(document.definition, what));
  if (document.cohort.has_value() == slides.empty()) {
    return Wrong(what, "cohort: must be null if there is no slide, and only then");
  }
  for (std::size_t i = 0; i < slides.size(); ++i) {
    // Documents of earlier versions do not have it.
    if (slides[i].origin.empty()) slides[i].origin = slides[i].id;
    PB_RETURN_IF_ERROR(CheckSlide(slides[i], document, StrCat(what, ": slides[", i, "]")));
  }
  if (document.cohort) {
    PB_RETURN_IF_ERROR(CheckPart(*document.cohort, document, StrCat(what, ": cohort")));
  }
  std::sort(slides.begin(), slides.end(),
            [](const SpectraSlide& a, const SpectraSlide& b) { return a.id < b.id; });
  const auto twice =
      std::adjacent_find(slides.begin(), slides.end(),
                         [](const SpectraSlide& a, const SpectraSlide& b) { return a.id == b.id; });
  if (twice == slides.end()) return document;
  return Wrong(what, StrCat("slides: id ", twice->id, " is listed twice"));
}

StatusOr<SpectraDocument> ReadSpectraDocument(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(allowed, path, kMaxSpectraBytes));
  const StatusOr<Json> document = ParseJson(text, path, kMaxSpectraBytes);
  if (!document.ok()) {
    return Wrong(
        path, StrCat("not a result of `patchbay spectra`: ", OutcomeOf(document.status()).cause));
  }
  return ParseSpectraDocument(*document, path);
}

}  // namespace patchbay::results

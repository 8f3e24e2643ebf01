#include "runtime/model/plan/class_histograms.h"

#include <algorithm>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/positions/checked_text.h"
#include "runtime/model/positions/position_index.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {
namespace {

constexpr std::string_view kHistogramsMark = "patchbay-histograms-1\n",
                           kReadHistograms = "read class histograms";
constexpr std::uint64_t kBins = 65'536;
constexpr int kLowest = -32'768;
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 44;

Status MalformedHistograms(std::string_view cause) {
  return InvalidArgument(kReadHistograms, ": ", cause);
}

/// Bins as the distance from the one before.
StatusOr<ClassHistogram> TakeClassHistogram(std::string_view& text) {
  ClassHistogram one;
  PB_RETURN_IF_ERROR(TakeClassName(text, one.value, one.name));
  std::uint64_t bins = 0, at = 0;
  if (!TakeVarint(text, kBins, bins)) return MalformedHistograms("cut short");
  for (std::uint64_t i = 0; i < bins; ++i) {
    std::uint64_t step = 0, count = 0;
    if (!TakeVarint(text, kBins, step) || !TakeVarint(text, kMaxCount, count) || count == 0) {
      return MalformedHistograms("a bin without a count");
    }
    at += step;
    if (at >= kBins || (i > 0 && step == 0)) {
      return MalformedHistograms("bins that are not in order");
    }
    one.counts[static_cast<std::int16_t>(static_cast<int>(at) + kLowest)] = count;
  }
  return one;
}

}  // namespace

std::string ClassHistogramsFileOf(std::size_t channel) {
  return channel == 0 ? std::string(kClassHistogramsFile)
                      : StrCat("histograms_", channel, ".index");
}

const ClassHistogram* ClassHistograms::Find(std::string_view name) const {
  for (const ClassHistogram& one : classes) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

Status ClassHistograms::Merge(const ClassHistograms& other) {
  for (const ClassHistogram& theirs : other.classes) {
    const auto at = std::lower_bound(
        classes.begin(), classes.end(), theirs,
        [](const ClassHistogram& a, const ClassHistogram& b) { return a.value < b.value; });
    if (at == classes.end() || at->value != theirs.value) {
      classes.insert(at, theirs);
      continue;
    }
    if (at->name != theirs.name) return MalformedHistograms("one value has two names");
    for (const auto& [hu, count] : theirs.counts) at->counts[hu] += count;
  }
  return absl::OkStatus();
}

std::string EncodeClassHistograms(const ClassHistograms& histograms) {
  std::string out(kHistogramsMark);
  AppendVarint(out, histograms.classes.size());
  for (const ClassHistogram& one : histograms.classes) {
    AppendClassName(one.value, one.name, out);
    AppendVarint(out, one.counts.size());
    int last = kLowest;
    for (const auto& [hu, count] : one.counts) {
      AppendVarint(out, static_cast<std::uint64_t>(hu - last));
      AppendVarint(out, count);
      last = hu;
    }
  }
  return WithCheck(std::move(out));
}

StatusOr<ClassHistograms> DecodeClassHistograms(std::string_view text) {
  PB_ASSIGN_OR_RETURN(
      text, CheckedBody(text, kHistogramsMark, kMaxClassHistogramsBytes, kReadHistograms));
  ClassHistograms histograms;
  PB_ASSIGN_OR_RETURN(
      histograms.classes,
      TakeClasses<ClassHistogram>(text, kMaxIndexClasses, kReadHistograms, TakeClassHistogram));
  return histograms;
}

}  // namespace patchbay::plan

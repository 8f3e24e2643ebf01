#include "runtime/model/ops/draw_range.h"

#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

Status CheckRange(const Json& range) {
  if (range[0].is_array()) {
    for (const Json& row : range) PB_RETURN_IF_ERROR(CheckRange(row));
    return absl::OkStatus();
  }
  const double low = range[0].get<double>(), high = range[1].get<double>();
  if (low <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("[", low, ", ", high, "]: the low bound is above the high one"));
}

DrawRange AsRange(const Json& range) { return {range[0].get<double>(), range[1].get<double>()}; }

}  // namespace

config::Key ProbabilityKey() {
  return {.name = "p",
          .type = config::KeyType::kFloat,
          .fallback = kDefaultProbability,
          .min = 0,
          .max = 1,
          .help = "probability that the op is applied to a patch"};
}

config::Key RangeKey(config::Key key, const DrawRange& fallback) {
  key.type = config::KeyType::kFloatList;
  key.fallback = Json::array({fallback.low, fallback.high});
  key.min_items = key.max_items = 2;
  key.check = CheckRange;
  return key;
}

DrawRange RangeOf(const Json& options, const char* name) { return AsRange(options[name]); }

std::array<DrawRange, 3> RangesOf(const Json& options, const char* name) {
  const Json& ranges = options[name];
  if (!ranges[0].is_array()) return {AsRange(ranges), AsRange(ranges), AsRange(ranges)};
  return {AsRange(ranges[0]), AsRange(ranges[1]), AsRange(ranges[2])};
}

}  // namespace patchbay::plan

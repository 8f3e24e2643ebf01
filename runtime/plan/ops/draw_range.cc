#include "runtime/plan/ops/draw_range.h"

#include <utility>

#include "runtime/base/strings.h"

namespace patchbay::plan {
namespace {

Status CheckRange(const Json& range) {
  const double low = range[0].get<double>(), high = range[1].get<double>();
  if (low <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("[", low, ", ", high, "]: the low bound is above the high one"));
}

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

DrawRange RangeOf(const Json& options, const char* name) {
  const Json& range = options[name];
  return {range[0].get<double>(), range[1].get<double>()};
}

}  // namespace patchbay::plan

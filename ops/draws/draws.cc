#include "ops/draws/draws.h"

#include "runtime/core/status.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

Status CheckRange(const Json& range) {
  if (range[0].is_array()) {
    for (const Json& row : range) PB_RETURN_IF_ERROR(CheckRange(row));
    return absl::OkStatus();
  }
  const double low = range[0].get<double>(), high = range[1].get<double>();
  if (low <= high) return absl::OkStatus();
  return InvalidArgument("[", low, ", ", high, "]: the low bound is above the high one");
}

}  // namespace

void Describe(const DrawRange& range, config::Key& key) {
  key.type = config::KeyType::kFloatList;
  key.fallback = Json::array({range.low, range.high});
  key.min_items = key.max_items = 2;
  key.check = CheckRange;
}

void ReadValue(const Json& json, const config::Key&, DrawRange& range) {
  range = {json[0].get<double>(), json[1].get<double>()};
}

void Describe(const std::array<DrawRange, 3>& ranges, config::Key& key) {
  Describe(ranges[0], key);
  key.rows = ranges.size();
}

void ReadValue(const Json& json, const config::Key& key, std::array<DrawRange, 3>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ReadValue(json[0].is_array() ? json[i] : json, key, ranges[i]);
  }
}

double Drawn(const DrawRange& range, std::uint32_t word) {
  return range.low + (range.high - range.low) * double{UniformFloat(word)};
}

double DrawnAroundOne(const DrawRange& range, std::uint32_t word) {
  if (!(range.low < 1 && range.high > 1)) return Drawn(range, word);
  const double u = 2 * double{UniformFloat(word)};
  return u < 1 ? range.low + (1 - range.low) * u : 1 + (range.high - 1) * (u - 1);
}

}  // namespace patchbay::ops

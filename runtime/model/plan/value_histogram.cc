#include "runtime/model/plan/value_histogram.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "runtime/core/base64.h"
#include "runtime/core/fields.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {
namespace {

constexpr std::string_view kReadValueHistogram = "read histogram of values";
constexpr std::int64_t kLeast = -32'768;
constexpr std::uint64_t kMostVoxels = std::uint64_t{1} << 40;

Status WrongHistogram(std::string_view cause) {
  return InvalidArgument(kReadValueHistogram, ": ", cause);
}

/// A histogram as a store carries it.
struct StoredHistogram {
  std::uint64_t voxels = 0;
  std::int16_t first = 0;
  std::string counts;

  static constexpr auto Fields() {
    using T = StoredHistogram;
    return AsFullObject(Field("voxels", &T::voxels), Field("first", &T::first),
                        Field("counts", &T::counts));
  }
};

}  // namespace

std::uint64_t ValueHistogram::Voxels() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

HuHistogram ValueHistogram::Counts() const {
  HuHistogram counts;
  for (std::size_t i = 0; i < kBins; ++i) {
    const auto value = static_cast<std::int16_t>(static_cast<std::int64_t>(i) + kLeast);
    if (counts_[i] != 0) counts.emplace_hint(counts.end(), value, counts_[i]);
  }
  return counts;
}

Json ValueHistogram::ToJson() const {
  const auto some = [](std::uint64_t count) { return count != 0; };
  const auto first = std::find_if(counts_.begin(), counts_.end(), some);
  const auto last = std::find_if(counts_.rbegin(), counts_.rend(), some).base();
  std::string bytes;
  for (auto at = first; at < last; ++at) {
    AppendVarint(bytes, *at);
    if (*at != 0) continue;
    const auto next = std::find_if(at, last, some);
    AppendVarint(bytes, static_cast<std::uint64_t>(next - at - 1));
    at = next - 1;
  }
  const std::int64_t hu = first == counts_.end() ? 0 : first - counts_.begin() + kLeast;
  return JsonOf(StoredHistogram{Voxels(), static_cast<std::int16_t>(hu), Base64Of(bytes)});
}

StatusOr<ValueHistogram> ValueHistogram::FromJson(const Json& value) {
  PB_ASSIGN_OR_RETURN(const auto stored,
                      patchbay::FromJson<StoredHistogram>(value, kReadValueHistogram));
  PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(stored.counts));
  ValueHistogram histogram;
  std::string_view rest = bytes;
  auto bin = static_cast<std::size_t>(stored.first - kLeast);
  while (!rest.empty()) {
    std::uint64_t count = 0, zeros = 0;
    if (!TakeVarint(rest, kMostVoxels, count)) {
      return WrongHistogram("counts: cut short, or too large");
    }
    if (bin >= kBins) return WrongHistogram("counts: more than there are values");
    histogram.counts_[bin++] = count;
    if (count != 0) continue;
    if (!TakeVarint(rest, kBins, zeros)) return WrongHistogram("counts: cut short, or too large");
    bin += static_cast<std::size_t>(zeros);
  }
  if (histogram.Voxels() != stored.voxels || histogram.ToJson() != value) {
    return WrongHistogram("it does not add up");
  }
  return histogram;
}

}  // namespace patchbay::plan

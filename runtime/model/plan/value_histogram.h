// The histogram of a volume's values, or of those in its body, counted at ingest. zscore and
// percentile compute the numbers of an image from it, exactly for any window.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/class_histograms.h"

namespace patchbay::plan {

/// One bin for each value of int16.
class ValueHistogram {
 public:
  static constexpr std::size_t kBins = 65'536;

  void Add(std::int16_t value, std::uint64_t count = 1) {
    counts_[static_cast<std::size_t>(value + 32'768)] += count;
  }
  std::uint64_t Voxels() const;
  HuHistogram Counts() const;

  /// {"voxels", "first", "counts"}: counts from the value `first` on, as varints in base64; a zero
  /// is followed by the number of further zeros.
  Json ToJson() const;
  /// InvalidArgument for anything that ToJson does not write.
  static StatusOr<ValueHistogram> FromJson(const Json& value);

 private:
  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(kBins, 0);
};

}  // namespace patchbay::plan

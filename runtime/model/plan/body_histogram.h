// The histogram of Hounsfield units in a volume's body, counted at ingest. zscore computes an
// image's mean and deviation from it, exactly for any window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::plan {

struct MeanAndDeviation {
  double mean = 0, std = 1;  ///< statistics of the whole population
};

/// One bin for each value of int16. Counts merge by addition, in any order.
class BodyHistogram {
 public:
  static constexpr std::size_t kBins = 65'536;

  void Add(std::int16_t hu, std::uint64_t count = 1) {
    counts_[static_cast<std::size_t>(hu + 32'768)] += count;
  }
  void Merge(const BodyHistogram& other);
  std::uint64_t Voxels() const;

  /// Statistics of the values as they are, or as the window makes them. nullopt without a voxel.
  std::optional<MeanAndDeviation> Statistics(const std::optional<ValueWindow>& window) const;

  /// {"voxels", "first", "counts"}: counts from HU `first` on, as varints in base64; a zero is
  /// followed by the number of further zeros.
  Json ToJson() const;
  /// InvalidArgument for anything that ToJson does not write.
  static StatusOr<BodyHistogram> FromJson(const Json& value);

 private:
  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(kBins, 0);
};

}  // namespace patchbay::plan

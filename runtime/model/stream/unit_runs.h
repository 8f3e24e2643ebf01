// The units of a stream whose batches must not cross them, such as the images of a map: each goes
// to one consumer whole.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay {

/// One unit: a run of patches that follow one another, cut into batches of its own. Numbered from 0
/// in the order of the epoch.
struct StreamUnit {
  std::uint64_t number = 0;
  std::uint64_t first_ordinal = 0, patches = 0;
  std::uint64_t first_batch = 0, batches = 0;

  std::uint64_t end_batch() const { return first_batch + batches; }
};

/// All units of an epoch in few words: runs of units with equally many patches. Copies share their
/// memory. Empty when default-constructed: the stream has no units.
class UnitRuns {
 public:
  struct Run {
    std::uint64_t patches_per_unit = 0, units = 0;
    bool operator==(const Run&) const = default;
  };
  UnitRuns() = default;
  /// The last batch of a unit of n patches has what is left of n / global_batch. InvalidArgument
  /// when runs are too many, have zeros or more patches than an epoch may have.
  static StatusOr<UnitRuns> Of(std::span<const Run> runs, std::uint32_t global_batch);
  /// The same from each unit's count; units without patches are left out.
  static StatusOr<UnitRuns> OfCounts(std::span<const std::uint64_t> patches_of_unit,
                                     std::uint32_t global_batch);

  bool empty() const { return starts_ == nullptr; }
  std::uint64_t units() const { return end_.number; }
  std::uint64_t patches() const { return end_.first_ordinal; }
  std::uint64_t batches() const { return end_.first_batch; }
  std::uint64_t most_patches() const { return most_patches_; }  ///< a unit's
  /// Unit `number`, which must exist.
  StreamUnit At(std::uint64_t number) const;
  /// The unit of a batch, which must exist.
  StreamUnit OfBatch(std::uint64_t batch) const;
  std::vector<Run> runs() const;

  /// Whether the runs are the same.
  bool operator==(const UnitRuns& other) const { return runs() == other.runs(); }

 private:
  StreamUnit Within(const StreamUnit& start, std::uint64_t index) const;

  /// The first unit of each run.
  std::shared_ptr<const std::vector<StreamUnit>> starts_;
  StreamUnit end_;  ///< behind the last one
  std::uint64_t most_patches_ = 0;
};

}  // namespace patchbay

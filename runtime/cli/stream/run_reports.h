// Reports on a run: the splits of its table, the images that its plan leaves out, counts of the
// slides, sites and classes of the patches that were delivered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/cli/terminal.h"
#include "runtime/client/run_file.h"
#include "runtime/client/stream.h"
#include "runtime/client/stream_paths.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::cli {

/// The report on the splits of a run's table, and on the rows that were compared for leaks: says
/// how many rows each split has, by how many rows patients and contents were compared, and beside
/// the result what was not. {"rows": {split: count}, "roles": {split: role}, "without_split",
/// "compared": {"rows", "patient_id", "content"}, "notices"}; null for a run without splits, of
/// which nothing is said.
Json ReportSplits(Terminal& terminal, const client::RunFile& run);

/// Prints the skipped files, and a note for each of the first skipped images.
void ReportSkipped(Terminal& terminal, const results::SkippedImages& skipped);

/// {"count", "images": [{"path", "reason"}, ...]}
Json ToJson(const results::SkippedImages& skipped);

class RealisedCounts {
 public:
  /// Counts the values of the batch's array `label`, where it has one on the host.
  void Add(const client::Batch& batch);

  /// {"slides": {slide_id: patches}[, "sites"][, "classes"]} of the batches that were added,
  /// padding left out. Slides and sites follow from the plan; classes are those of the array
  /// `label` by name, or without it those that sampling.class_weights drew. `slides` and `sites`
  /// name the plan's images; images without a site are left out. The patches of a batch follow from
  /// `geometry` and `rank`.
  StatusOr<Json> Count(const plan::Plan& plan, const StreamGeometry& geometry, std::uint32_t rank,
                       const std::vector<std::string>& slides,
                       const std::vector<std::string>& sites) const;

 private:
  struct Taken {
    std::uint32_t epoch = 0;
    std::uint64_t batch = 0;
    std::uint32_t patches = 0;  ///< this rank's, padding included
  };
  std::vector<Taken> batches_;
  std::map<std::int64_t, std::uint64_t> labels_;
};

}  // namespace patchbay::cli

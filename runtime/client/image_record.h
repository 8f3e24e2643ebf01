// The columns of the user's table for each image of a plan. They stay on the user's side: workers
// and the scheduler see row numbers.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/client/run_file.h"
#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/model/results/image_facts.h"
#include "runtime/model/results/skipped_images.h"

namespace patchbay::client {

struct ImageRecord {
  std::string slide_id;  ///< id in the row; without a table the stem of the path
  std::string split;     ///< "" without a split column
  /// The row's other columns but its path, as they stand in the table: patient_id, site, ...
  std::vector<std::pair<std::string, std::string>> columns;

  results::ImageFacts facts;  ///< as the plan used them
  Digest digest;              ///< PlannedImage::digest
  /// Mean and deviation that zscore subtracts and divides by, of each channel; empty without it.
  std::vector<std::pair<double, double>> zscore;
  /// The values that percentile makes 0 and 1, likewise.
  std::vector<std::pair<double, double>> percentiles;

  /// The cell, or "" where there is no such column.
  const std::string& Cell(std::string_view column) const;
};

/// The result of a planning job, as its submitter reads it.
struct PlannedRun {
  plan::Plan plan;
  plan::PlannedManifest manifest;          ///< without its facts
  std::vector<results::ImageFacts> facts;  ///< facts of each image
  results::SkippedImages skipped;
};

/// InvalidArgument for a result that is none.
StatusOr<PlannedRun> ReadPlannedRun(const plan::OpTable& ops, std::string_view result);

/// One record per image of the plan, in its order. FailedPrecondition when the plan is of another
/// table.
StatusOr<std::vector<ImageRecord>> RecordsOf(const RunFile& run, const PlannedRun& planned);

}  // namespace patchbay::client

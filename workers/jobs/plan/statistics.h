// Statistics that `patchbay lock` computes over the training images of a run, so that every stream
// of the run uses the same numbers, whatever its split.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/run_config.h"
#include "runtime/model/source/modality.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

struct TrainingImage {
  std::string path;                    ///< canonical
  std::map<std::string, Digest> sets;  ///< label set -> the revision that the lock pins
  std::optional<Modality> modality;    ///< by its row, else by its store or the chosen channel
  std::size_t channel = 0;             ///< channel of the store that is chosen, where it is one
  std::size_t channels = 1;            ///< channels that are chosen
};

/// One member of a lock's section `statistics`. Its result is written unchanged into the lock and
/// is sent with every stream of the run (client::RunFile::lock), so it holds no path.
struct StatisticsProvider {
  std::string_view name;
  /// Whether a run of that config needs it; locks of other runs do not have it.
  bool (*is_needed)(const plan::RunConfig& config);
  /// Computes the statistic over all training images (over all images without splits), in the
  /// lock's order. Deterministic. Reads the histograms that ingest and labels import stored, never
  /// all pixels. InvalidArgument naming an image without them; AddProgress for each image.
  StatusOr<Json> (*sum)(TaskContext& context, const plan::RunConfig& config,
                        const std::vector<TrainingImage>& images);
};

/// All there are, by name.
std::span<const StatisticsProvider> StatisticsProviders();

/// {name: value} of the statistics that the config needs.
StatusOr<Json> SumStatistics(TaskContext& context, const plan::RunConfig& config,
                             const std::vector<TrainingImage>& images);

}  // namespace patchbay::workers

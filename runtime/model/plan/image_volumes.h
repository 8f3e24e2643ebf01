// Facts of volumes in a plan beside their voxels: spacing and statistics, where the ops need
// them, so that no worker decides.
#pragma once

#include <optional>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/volume_chain.h"
#include "runtime/model/ops/window.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// Facts of each image that the ops of a config need, as a payload names them.
struct VolumeNeeds {
  FactsNeeded facts;
  std::optional<WindowOptions> window;  ///< of the statistics for zscore

  bool Any() const { return facts.spacing || facts.body; }
};
VolumeNeeds VolumeNeedsOf(const RunConfig& config);
Json ToJson(const VolumeNeeds& needs);
StatusOr<VolumeNeeds> VolumeNeedsFromJson(const Json& value);

/// Leaves each image what the config's ops need, and nothing without need. InvalidArgument when an
/// image lacks it.
Status SettleVolumes(const RunConfig& config, std::vector<PlannedImage>& images);

/// One row an image: spacing along z, y and x in millimetres, mean, deviation; where patches are
/// resampled also the voxels of the level for one of theirs along z, y and x. Null without need.
Json VolumesToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for what VolumesToJson does not give of so many images.
Status VolumesFromJson(const RunConfig& config, const Json& rows,
                       std::vector<PlannedImage>& images);

/// One such row.
Json ToJson(const VolumeFacts& facts);
StatusOr<VolumeFacts> VolumeFactsFromJson(const Json& row);

}  // namespace patchbay::plan

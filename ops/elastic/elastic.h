// elastic: the control points that a patch draws, of an image and of a volume.
#pragma once

#include "ops/geometry/sample_map.h"
#include "ops/geometry/volume_map.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/elastic.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

/// Word 0 of the key's first block decides whether anything changes; block i of its field stream
/// has the displacement of control point i along y (word 0) and x (word 1). The outer two of each
/// end are 0. Requires options that passed CheckFolding.
ElasticField DrawElastic(const plan::ElasticOptions& options, const DrawKey& key);

/// Block (z points + y) points + x of the key's field stream has the moves of that control point
/// along z, y and x in words 0 to 2. The outer two of each end stay. `amplitude` is in finished
/// voxels.
VolumeField DrawField(const plan::ElasticOptions& options, const DrawKey& key,
                      const plan::PerAxis& amplitude, const Extent& patch);

}  // namespace patchbay::ops

// The places that a user's table lists, from pixels of level 0 to those of the level that patches
// are cut from.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// manifest["table"]["positions"]: one text an image (plan::EncodePositions), or nothing.
/// InvalidArgument unless it has `count`.
StatusOr<std::vector<std::string>> ListedPositionsOf(const Json& manifest, std::size_t count);

/// manifest["table"]["positions_order"] (plan::EncodeListedRuns, by row), by number of the plan's
/// images: `rows` are theirs, rising; what the table lists for others is left out. Nothing unless
/// `config` asks for the table's order; InvalidArgument when the manifest lacks it then.
StatusOr<std::vector<plan::ListedRun>> ListedSequenceOf(const Json& manifest,
                                                        const plan::RunConfig& config,
                                                        std::span<const std::size_t> rows);

/// Rounded to the nearest pixel of the planned image's level. InvalidArgument naming the first
/// place that is not in the image.
StatusOr<std::vector<plan::PlanePoint>> PlacesAtLevel(const std::string& positions,
                                                      const ImageLayout& layout,
                                                      const plan::PlannedImage& image);

}  // namespace patchbay::workers

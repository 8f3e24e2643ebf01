// What opening one image for a plan came to, as it travels from the task that opened it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/format/json/json.h"
#include "runtime/model/ops/volume_facts.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/results/image_facts.h"

namespace patchbay::workers {

/// An image, or why it is none.
struct ImageRow {
  plan::PlannedImage image;
  std::string stamp;  ///< StampOf before it was opened
  std::string path;   ///< not empty: the image is the store here, not what is listed
  /// um/px of what becomes `image`: of the level, or what patch.mpp comes to. Absent: not known.
  std::optional<double> mpp;
  results::ImageFacts facts;
  bool mpp_assumed = false;  ///< the store has it from `ingest --assume-mpp`, not from its slide
  /// For volumes that state them: mm from voxel to voxel of the level, and the sides their axes run
  /// to.
  std::optional<plan::PerAxis> spacing;
  std::string orientation;
  std::string fault;  ///< not empty: why it is left out; the rest says nothing then
};

Json ToJson(const std::vector<ImageRow>& rows);

/// InvalidArgument for what ToJson does not give.
StatusOr<std::vector<ImageRow>> ImageRowsFromJson(const Json& value);

}  // namespace patchbay::workers

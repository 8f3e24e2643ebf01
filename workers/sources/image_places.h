// The places of one image that sampling may take, from the indexes in its store.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/plan/places.h"
#include "runtime/plan/plan.h"

namespace patchbay::workers {

struct LoadedPlaces {
  std::vector<Digest> indexes;  ///< of the files, that of the tissue first
  plan::ImagePlaces places;
};

/// Of an image whose level is chosen. FailedPrecondition when the image has no such
/// label set; says what to do. InvalidArgument and DataLoss for a file that is no index.
StatusOr<LoadedPlaces> LoadPlaces(const plan::RunConfig& config, const plan::PlannedImage& image,
                                  const std::string& store);

}  // namespace patchbay::workers

// The places of one image that sampling may take, from the indexes in its store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/plan/places.h"
#include "runtime/model/plan/plan.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// The revision of a label set that is wanted.
struct LabelRevision {
  enum class By : std::uint8_t {
    kCurrent,
    kDigest,  ///< digest of the revision
    kIndex,   ///< digest of the index of its places
  };
  By by = By::kCurrent;
  Digest digest = {};  ///< unless kCurrent
  /// The revision itself, where it is open already: it is not read again.
  std::shared_ptr<const zarr::OpenedLabelSet> opened = nullptr;
};

/// NotFound names the existing sets, and for a removed revision the command that switches to the
/// current one.
StatusOr<std::shared_ptr<const zarr::OpenedLabelSet>> OpenRevision(const Folders& allowed,
                                                                   const std::string& store,
                                                                   const std::string& set,
                                                                   const LabelRevision& revision);

struct LoadedPlaces {
  std::vector<Digest> indexes;  ///< digests of the files, that of the tissue first
  plan::ImagePlaces places;
};

/// Revisions of the set of tissue and of the set of classes.
struct PlaceRevisions {
  LabelRevision tissue, classes;
};

/// The revisions whose indexes are `indexes` (LoadedPlaces::indexes of the same config).
PlaceRevisions RevisionsOfIndexes(const plan::RunConfig& config,
                                  const std::vector<Digest>& indexes);

struct CountedPlaces {
  std::vector<Digest> indexes;  ///< as in LoadedPlaces
  std::vector<plan::PlaceCount> counts;
};

/// Loads the places of an image whose level is chosen. FailedPrecondition, with a remedy, when the
/// image has no such revision. DataLoss for an index that is not the one its revision records.
StatusOr<LoadedPlaces> LoadPlaces(const Folders& allowed, const plan::RunConfig& config,
                                  const plan::PlannedImage& image, const std::string& store,
                                  const PlaceRevisions& revisions);
/// The number of these places, by set: as LoadPlaces, without a list of them.
StatusOr<CountedPlaces> CountPlaces(const Folders& allowed, const plan::RunConfig& config,
                                    const plan::PlannedImage& image, const std::string& store,
                                    const PlaceRevisions& revisions);

}  // namespace patchbay::workers

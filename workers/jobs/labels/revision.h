// A revision of a label set on its way into a store.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "runtime/core/hash.h"
#include "runtime/format/zarr/image_store.h"
#include "workers/jobs/labels/image.h"
#include "workers/jobs/labels/labels_folder.h"
#include "workers/jobs/labels/request.h"

namespace patchbay::workers {

/// The row's paths, which the submitter may use.
struct ImportRow {
  LabelledImage image;
  std::string file, site;  ///< empty for tissue
};

/// The metadata common to all label images: levels and spacing, the set, its classes with the
/// `pixels` of each, and the row's site where the class table maps mask values by site. The caller
/// adds settings, and the source of the labels under attributes.labels.
zarr::ImageStoreSpec RevisionSpec(const LabelsRequest& request, const ImportRow& row,
                                  const std::array<std::uint64_t, 256>& pixels);

/// Publishes the folder's Staging, metadata included, as the current revision of the row's set;
/// `digest` is its byte root. Returns true when the revision existed before.
StatusOr<bool> PublishRevision(TaskContext& context, const LabelsFolder& folder,
                               const LabelsRequest& request, const ImportRow& row,
                               const Digest& digest);

}  // namespace patchbay::workers

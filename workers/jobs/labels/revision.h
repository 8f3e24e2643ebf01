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

/// What every label image says of itself: its levels and spacing, the set and its classes with the
/// `pixels` of each, and the row's site where mask values mean what the table has for it. The
/// caller adds settings, and to attributes.labels where the labels are from.
zarr::ImageStoreSpec RevisionSpec(const LabelsRequest& request, const ImportRow& row,
                                  const std::array<std::uint64_t, 256>& pixels);

/// What lies in the folder's Staging, metadata included, as a revision of the row's set, the
/// current one; `digest` is its byte root. True when it was there before.
StatusOr<bool> PublishRevision(TaskContext& context, const LabelsFolder& folder,
                               const LabelsRequest& request, const ImportRow& row,
                               const Digest& digest);

}  // namespace patchbay::workers

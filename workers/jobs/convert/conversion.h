// One store as the job converts it.
#pragma once

#include <string>

#include "runtime/format/zarr/opened_store.h"
#include "runtime/model/jobs/convert_options.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct Conversion {
  ConvertOptions options;
  std::string path;  ///< the store's, canonical
  zarr::OpenedStore store;
  Json attributes;  ///< its own, attributes.patchbay
  /// Its layout: spacing and level ratios as its metadata has them.
  ImageLayout layout;
};

/// Writes the store with the other codec to `staging`, its label sets with it; returns its roots.
/// DataLoss when the pixels are not those that the store's digest names.
StatusOr<zarr::StoreRoots> RecodeStore(TaskContext& context, const Conversion& from,
                                       const std::string& staging);
/// attributes.patchbay.codec_plan of the new store.
Json CodecPlanOf(const Conversion& from);

/// Writes the kept tiles of the store as a TIFF to `path`, durably. Unimplemented for stores
/// without them.
Status WriteSlideFile(TaskContext& context, const Conversion& from, const std::string& path);
/// The first description of that file; it names the store's digest.
std::string DescriptionOf(const Conversion& from);

}  // namespace patchbay::workers

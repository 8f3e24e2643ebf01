#include "workers/access/planned_images.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/plan/planned_manifest.h"

namespace patchbay::workers {

StatusOr<PlannedImages> PlannedImagesOf(const Json& manifest, std::size_t count) {
  PB_ASSIGN_OR_RETURN(auto read, FromJson<plan::PlannedManifest>(manifest, "stream manifest"));
  PlannedImages images{read.Paths(), std::move(read.stamps), std::move(read.functions)};
  if (images.paths.size() != count || images.stamps.size() != count) {
    return InvalidArgument("stream manifest: its images do not match the plan");
  }
  return images;
}

}  // namespace patchbay::workers

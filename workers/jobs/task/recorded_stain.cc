#include "workers/jobs/task/recorded_stain.h"

#include "runtime/format/json/described.h"
#include "workers/access/stamps.h"

namespace patchbay::workers {

StatusOr<std::optional<RecordedStain>> RecordedStainOf(const Folders& allowed,
                                                       const std::string& path,
                                                       StainColours colours) {
  const StainAttributes names = StainAttributesOf(colours);
  const Json fit = RecordedAttribute(allowed, path, names.fit);
  if (fit.is_null()) {
    if (colours == StainColours::kDevice) return std::optional<RecordedStain>();
    return RecordedStainOf(allowed, path, StainColours::kDevice);
  }
  RecordedStain recorded;
  PB_ASSIGN_OR_RETURN(recorded.fit, FromJson<plan::StainFit>(fit, "stain fit"));
  const Json evidence = RecordedAttribute(allowed, path, names.evidence);
  if (!evidence.is_null()) {
    PB_ASSIGN_OR_RETURN(recorded.evidence, FromJson<plan::StainEvidence>(evidence, "stain fit"));
  }
  return std::optional(recorded);
}

}  // namespace patchbay::workers

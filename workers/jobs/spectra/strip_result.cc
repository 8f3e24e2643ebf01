#include "workers/jobs/spectra/strip_result.h"

#include "runtime/format/json/described.h"
#include "workers/jobs/spectra/staging.h"

namespace patchbay::workers {

Json ToJson(StripResult& result) {
  if (!result.damaged) result.encoded_sums = SumsToJson(result.sums);
  return JsonOf<StripRecord>(result);
}

StatusOr<StripResult> StripResultFromJson(const Json& json, const plan::SpectralOptions& options) {
  StripResult result;
  PB_RETURN_IF_ERROR(ReadJson<StripRecord>(json, JsonPlace("strip result"), result));
  if (result.damaged) return result;
  PB_ASSIGN_OR_RETURN(result.sums, SumsFromJson(result.encoded_sums, options));
  return result;
}

}  // namespace patchbay::workers

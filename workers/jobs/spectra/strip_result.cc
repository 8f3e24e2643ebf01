#include "workers/jobs/spectra/strip_result.h"

#include <string_view>
#include <utility>

#include "workers/access/planned_images.h"
#include "workers/jobs/spectra/staging.h"
#include "workers/jobs/task/find_images.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "strip result";

StatusOr<DamagedTile> DamagedTileFromJson(const Json& json) {
  DamagedTile tile;
  PB_ASSIGN_OR_RETURN(tile.row, JsonInt(json, "row", kWhat));
  PB_ASSIGN_OR_RETURN(tile.column, JsonInt(json, "column", kWhat));
  PB_ASSIGN_OR_RETURN(tile.cause, JsonString(json, "cause", kWhat));
  return tile;
}

}  // namespace

Json ToJson(const StripResult& result) {
  if (result.damaged) {
    return {{"damaged",
             {{"row", result.damaged->row},
              {"column", result.damaged->column},
              {"cause", result.damaged->cause}}}};
  }
  return {{"frames_skipped", result.frames_skipped},
          {"frames_off_tissue", result.frames_off_tissue},
          {"sums", SumsToJson(result.sums)},
          {"coefficients", result.coefficients}};
}

StatusOr<StripResult> StripResultFromJson(const Json& json, const plan::SpectralOptions& options) {
  StripResult result;
  if (json.is_object() && json.contains("damaged")) {
    PB_ASSIGN_OR_RETURN(result.damaged, DamagedTileFromJson(json["damaged"]));
    return result;
  }
  PB_ASSIGN_OR_RETURN(result.frames_skipped, JsonCount(json, "frames_skipped", kWhat));
  PB_ASSIGN_OR_RETURN(result.frames_off_tissue, JsonCount(json, "frames_off_tissue", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* sums, JsonMember(json, "sums", kWhat));
  PB_ASSIGN_OR_RETURN(result.sums, SumsFromJson(*sums, options));
  PB_ASSIGN_OR_RETURN(result.coefficients, ManifestPaths(json, "coefficients"));
  return result;
}

}  // namespace patchbay::workers

#include "workers/plots/spectra_plots.h"

namespace patchbay::workers {

StatusOr<std::vector<PlotFile>> DrawSpectraPlots(const Json& document) {
  PB_ASSIGN_OR_RETURN(const Json* slides, JsonMember(document, "slides", "spectra"));
  if (!slides->is_array()) return absl::InvalidArgumentError("spectra: slides: not a list");
  return std::vector<PlotFile>();
}

}  // namespace patchbay::workers

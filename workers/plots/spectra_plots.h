// The pictures of a spectral analysis: what spectra.json says (configs/spectra.md), for the eye.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

struct PlotFile {
  std::string name;  ///< "histogram.png", "radial.png", "cohort.png"
  std::string png;   ///< the whole file
};

/// Draws `document`, a spectra.json: the distribution of levels, the radially averaged power, and
/// the cohort slide by slide, in this order. Nothing when no slide was measured. The same document
/// gives the same bytes. InvalidArgument, naming the member, for a document of another shape.
StatusOr<std::vector<PlotFile>> DrawSpectraPlots(const Json& document);

}  // namespace patchbay::workers

// The pictures of a spectral analysis, drawn from spectra.json (configs/spectra.md).
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/results/spectra_document.h"
#include "workers/plots/drawing.h"

namespace patchbay::workers {

// The three pictures of DrawSpectraPlots, one file each. Every one needs a document with at least
// one slide.

Drawing DrawHistogram(const results::SpectraDocument& document);
Drawing DrawRadial(const results::SpectraDocument& document);
Drawing DrawCohort(const results::SpectraDocument& document);

struct PlotFile {
  std::string name;  ///< "histogram.png", "radial.png", "cohort.png"
  std::string png;   ///< the whole file
};

/// Draws `document`: the distribution of levels, the radially averaged power, and
/// the cohort slide by slide, in this order. No files when no slide was measured. The same document
/// gives the same bytes.
StatusOr<std::vector<PlotFile>> DrawSpectraPlots(const results::SpectraDocument& document);

}  // namespace patchbay::workers

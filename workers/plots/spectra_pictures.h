// The three pictures of DrawSpectraPlots, one file each. Every one needs a document with at least
// one slide.
#pragma once

#include "runtime/results/spectra_document.h"
#include "workers/plots/canvas.h"

namespace patchbay::workers {

Canvas DrawHistogram(const results::SpectraDocument& document);
Canvas DrawRadial(const results::SpectraDocument& document);
Canvas DrawCohort(const results::SpectraDocument& document);

}  // namespace patchbay::workers

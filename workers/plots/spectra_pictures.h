// The three pictures of DrawSpectraPlots, one file each. Every one needs a document with at least
// one slide.
#pragma once

#include "runtime/model/results/spectra_document.h"
#include "workers/plots/drawing.h"

namespace patchbay::workers {

Drawing DrawHistogram(const results::SpectraDocument& document);
Drawing DrawRadial(const results::SpectraDocument& document);
Drawing DrawCohort(const results::SpectraDocument& document);

}  // namespace patchbay::workers

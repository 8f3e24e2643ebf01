// The results of a spectra job in its output folder: whether they may lie there, and putting them
// there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/results/spectra_document.h"
#include "workers/jobs/spectra/spectra_staging.h"

namespace patchbay::workers {

/// One row of manifest.csv.
struct SpectraSource {
  std::string id, digest;  ///< empty when the file could not be read whole
};

/// A file in the job's folder: results are being written to OUT.
inline constexpr char kPublishingFile[] = "publishing";

/// AlreadyExists, naming the first, when OUT holds files under our names that are not results of
/// these sources under these settings. Nothing is touched.
Status CheckOutIsFree(const SpectraTask& job);

/// Writes every file of a finished job, spectra.json last; each appears whole and durable. The
/// coefficient arrays of `slides` are read from the job's folder. Returns the names of the plots.
StatusOr<std::vector<std::string>> PublishSpectra(TaskContext& context, const SpectraTask& job,
                                                  const std::vector<SpectraSource>& sources,
                                                  const results::SpectraDocument& document);

/// The mean level of every coefficient as a NumPy file: float32, frame x (frame / 2 + 1).
std::string CoefficientsNpy(const ops::SpectralSums& sums, const plan::SpectralOptions& options);

/// coefficients/<id>.npy, or one for each channel.
Status PublishCoefficients(TaskContext& context, const SpectraTask& job, SlideSpectra& slide);

}  // namespace patchbay::workers

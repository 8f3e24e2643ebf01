// A CT series of a phantom as DICOM, with any fault of geometry or format on request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"
#include "workers/jobs/synth/slide.h"

namespace patchbay::workers {

inline constexpr std::int64_t kMaxSeriesSide = 1024;

struct SynthCtOptions {
  Extent size{24, 128, 128};                 ///< slices, rows, columns
  std::uint64_t seed = 1;                    ///< same seed, same voxels
  double step_mm = 2.5, pixel_mm = 0.78125;  ///< from slice to slice, from pixel to pixel
  std::string fault = "none";
  /// "": none. Tumours and polyps, and their mask in this file: NIfTI, 1 and 2, others 0.
  std::string lesions = {};
};

/// A thing that may be wrong, or unusual, with a series.
struct SynthFault {
  std::string_view name, says;
};
/// All of them, "none" first.
const std::vector<SynthFault>& SynthFaults();

/// {"size", "seed", "fault", "step_mm", "pixel_mm"}; absent keys keep their defaults.
/// InvalidArgument for unknown keys and faults, and sizes and lengths out of range.
StatusOr<SynthCtOptions> SynthCtOptionsFromJson(const Json& json);

/// Writes the series into `folder`, which is made and must not exist, and the mask of its lesions.
/// On failure nothing is left.
/// Returns how many files there are.
StatusOr<std::int64_t> SynthCt(const Folders& allowed, const std::string& folder,
                               const SynthCtOptions& options,
                               const SynthProgress& progress = nullptr);

}  // namespace patchbay::workers

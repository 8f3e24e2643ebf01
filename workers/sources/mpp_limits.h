// Limits on the pixel size of a microscope.
#pragma once

namespace patchbay::workers {

/// Micrometres per pixel. What a file states outside of them was not measured: it counts as not
/// stated.
inline constexpr double kSmallestMpp = 1e-3;
inline constexpr double kLargestMpp = 50;

}  // namespace patchbay::workers

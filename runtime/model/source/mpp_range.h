// The plausible range of micrometres per pixel.
#pragma once

namespace patchbay {

/// A file's value outside the range counts as not stated; a user's is refused.
inline constexpr double kSmallestMpp = 1e-3;
inline constexpr double kLargestMpp = 50;

}  // namespace patchbay

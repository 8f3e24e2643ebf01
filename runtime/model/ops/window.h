// window: a range of Hounsfield units becomes 0 to 1; what lies outside is 0 or 1.
#pragma once

#include <optional>

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

/// Hounsfield units; wide enough for every type of image.
inline constexpr double kMaxWindowBound = 1e6;

struct WindowOptions {
  double low = 0, high = 1;  ///< low < high

  static config::Key Keys();
  /// From a value that passed Keys().
  static WindowOptions FromJson(const Json& options);
};

/// What Hounsfield units become; themselves without a window.
double Windowed(double hu, const std::optional<WindowOptions>& window);
/// Of both lists of ops.
std::optional<WindowOptions> FindWindow(const Json& preprocess, const Json& augment);

}  // namespace patchbay::plan

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

/// Hounsfield units after the window; unchanged without one.
double Windowed(double hu, const std::optional<WindowOptions>& window);
/// The window of both lists of ops; nullopt without one.
std::optional<WindowOptions> FindWindow(const Json& preprocess, const Json& augment);

}  // namespace patchbay::plan

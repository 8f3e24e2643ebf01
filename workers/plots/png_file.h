// A canvas as the bytes of a PNG file. The only door to libpng.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "workers/plots/canvas.h"

namespace patchbay::workers {

/// 8-bit RGB, a fixed compression, no time and no other text: the same picture gives the same
/// bytes.
StatusOr<std::string> EncodePng(const Canvas& canvas);

}  // namespace patchbay::workers

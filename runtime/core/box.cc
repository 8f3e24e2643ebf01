#include "runtime/core/box.h"

#include <algorithm>

namespace patchbay {

Box Intersect(const Box& a, const Box& b) {
  Box r;
  r.z = std::max(a.z, b.z);
  r.y = std::max(a.y, b.y);
  r.x = std::max(a.x, b.x);
  r.depth = std::max<std::int64_t>(0, std::min(a.z + a.depth, b.z + b.depth) - r.z);
  r.height = std::max<std::int64_t>(0, std::min(a.y + a.height, b.y + b.height) - r.y);
  r.width = std::max<std::int64_t>(0, std::min(a.x + a.width, b.x + b.width) - r.x);
  return r;
}

}  // namespace patchbay

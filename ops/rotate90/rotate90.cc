#include "ops/rotate90/rotate90.h"

namespace patchbay::ops {

Rotate90Parameters DrawRotate90(const DrawKey& key) {
  return {static_cast<int>(Draw(key, 0).word[0] >> 30)};
}

}  // namespace patchbay::ops

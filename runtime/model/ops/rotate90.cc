#include "runtime/model/ops/rotate90.h"

namespace patchbay::plan {

config::Key Rotate90Options::Keys() {
  return {.name = "rotate90",
          .type = config::KeyType::kMap,
          .help =
              "rotates the patch by 0, 90, 180 or 270 degrees, each equally likely; square "
              "patches only"};
}

}  // namespace patchbay::plan

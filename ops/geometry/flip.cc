#include "ops/geometry/flip.h"

namespace patchbay::ops {

FlipParameters DrawFlip(const plan::FlipOptions& options, const DrawKey& key) {
  const PhiloxBlock block = Draw(key, 0);
  return {UniformFloat(block.word[0]) < options.horizontal,
          UniformFloat(block.word[1]) < options.vertical};
}

}  // namespace patchbay::ops

#include "ops/flip/flip.h"

namespace patchbay::ops {

FlipParameters DrawFlip(const plan::FlipOptions& options, const DrawKey& key) {
  const PhiloxBlock block = Draw(key, 0);
  return {UniformFloat(block.word[0]) < options.horizontal,
          UniformFloat(block.word[1]) < options.vertical};
}

void DrawMirrors(const plan::FlipOptions& options, const DrawKey& key, bool (&mirrored)[3]) {
  const PhiloxBlock block = Draw(key, 0);
  const auto below = [&block](std::size_t word, double p) {
    return UniformFloat(block.word[word]) < p;
  };
  const bool z = options.by_axes && options.z && below(0, 0.5);
  const bool y = options.by_axes ? options.y && below(1, 0.5) : below(1, options.vertical);
  const bool x = options.by_axes ? options.x && below(2, 0.5) : below(0, options.horizontal);
  mirrored[0] = mirrored[0] != z;
  mirrored[1] = mirrored[1] != y;
  mirrored[2] = mirrored[2] != x;
}

}  // namespace patchbay::ops

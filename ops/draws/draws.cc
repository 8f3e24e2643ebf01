#include "ops/draws/draws.h"

namespace patchbay::ops {

double Drawn(const plan::DrawRange& range, std::uint32_t word) {
  return range.low + (range.high - range.low) * double{UniformFloat(word)};
}

double DrawnAroundOne(const plan::DrawRange& range, std::uint32_t word) {
  if (!(range.low < 1 && range.high > 1)) return Drawn(range, word);
  const double u = 2 * double{UniformFloat(word)};
  return u < 1 ? range.low + (1 - range.low) * u : 1 + (range.high - 1) * (u - 1);
}

}  // namespace patchbay::ops

#include "ops/crop/crop.h"

namespace patchbay::ops {
namespace {

std::int64_t Place(std::uint32_t high, std::uint32_t low, std::int64_t margin) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return static_cast<std::int64_t>(UniformBelow(bits, 2 * static_cast<std::uint64_t>(margin) + 1));
}

}  // namespace

CropParameters DrawCrop(const plan::CropOptions& options, const DrawKey& key) {
  if (!options.random) return {options.margin_y, options.margin_x};
  const PhiloxBlock block = Draw(key, 0);
  return {Place(block.word[0], block.word[1], options.margin_y),
          Place(block.word[2], block.word[3], options.margin_x)};
}

}  // namespace patchbay::ops

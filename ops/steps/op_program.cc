#include "ops/steps/op_program.h"

#include <cstdio>

namespace patchbay::ops {

std::optional<std::uint32_t> PatchDraw::WordIf(double p, std::uint32_t occurrence) const {
  const PhiloxBlock block = patchbay::Draw(KeyOf(occurrence), 0);
  if (!(UniformFloat(block.word[0]) < p)) return std::nullopt;
  return block.word[1];
}

std::string Digits(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

double ProgramShape::White() const {
  if (in_depth) return 1;
  switch (source) {
    case DType::kUint16:
      return 65'535;
    case DType::kInt16:
      return 32'767;
    case DType::kFloat32:
      return 1;
    default:
      return 255;
  }
}

}  // namespace patchbay::ops

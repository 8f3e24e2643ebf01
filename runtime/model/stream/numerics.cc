#include "runtime/model/stream/numerics.h"

namespace patchbay {

std::string_view NameOf(Numerics numerics) {
  switch (numerics) {
    case Numerics::kCpu:
      return "cpu";
    case Numerics::kCuda:
      return "cuda";
    case Numerics::kStrict:
      return "strict";
  }
  return "";
}

std::optional<Numerics> NumericsFromName(std::string_view name) {
  for (const Numerics numerics : kAllNumerics) {
    if (NameOf(numerics) == name) return numerics;
  }
  return std::nullopt;
}

}  // namespace patchbay

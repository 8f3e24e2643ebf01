// An op that draws for every patch, with its part of the draw key.
#pragma once

#include <cstdint>

namespace patchbay::ops {

template <typename Options>
struct DrawnOp {
  std::uint32_t occurrence = 0;  ///< plan::Occurrence: part of its draw key
  Options options;
};

}  // namespace patchbay::ops

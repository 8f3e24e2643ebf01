// Sizes beyond their limits, as errors name them.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/strings.h"

namespace patchbay {

/// "1.0 TiB, more than 16.0 MiB"; in bytes where the two look alike so.
inline std::string BytesBeyond(std::uint64_t bytes, std::uint64_t most) {
  const std::string has = HumanBytes(bytes), may = HumanBytes(most);
  if (has == may) return StrCat(bytes, " bytes, more than ", most);
  return StrCat(has, ", more than ", may);
}

}  // namespace patchbay

// Numbers of things and sizes beyond their limits, as sentences name them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/strings.h"

namespace patchbay {

/// "1 row", "3 rows". `many` where it is not `one` with an s.
inline std::string Counted(std::uint64_t count, std::string_view one, std::string_view many = "") {
  if (count == 1) return StrCat("1 ", one);
  return many.empty() ? StrCat(count, " ", one, "s") : StrCat(count, " ", many);
}

/// "1.0 TiB, more than 16.0 MiB"; in bytes where the two look alike so.
inline std::string BytesBeyond(std::uint64_t bytes, std::uint64_t most) {
  const std::string has = HumanBytes(bytes), may = HumanBytes(most);
  if (has == may) return StrCat(bytes, " bytes, more than ", most);
  return StrCat(has, ", more than ", may);
}

}  // namespace patchbay

// Numbers of things, as sentences name them.
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

}  // namespace patchbay

// Where a cluster listens unless told otherwise.
#pragma once

#include <cstdint>

namespace patchbay::cli {

inline constexpr std::uint16_t kDefaultPort = 7678;

}  // namespace patchbay::cli

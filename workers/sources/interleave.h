// Three planes to interleaved pixels, as fast as they can be read.
#pragma once

#include <cstdint>

namespace patchbay::workers {

/// out[3 i], out[3 i + 1], out[3 i + 2] = first[i], second[i], third[i].
void InterleaveRow(const std::uint8_t* first, const std::uint8_t* second, const std::uint8_t* third,
                   std::int64_t pixels, std::uint8_t* out);

}  // namespace patchbay::workers

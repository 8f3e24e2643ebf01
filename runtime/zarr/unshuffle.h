// Elements whose bytes a byte shuffle has put apart, together again.
#pragma once

#include <cstddef>

namespace patchbay::zarr {

/// `planes` holds the first bytes of all `elements`, then their second bytes, and so on. Writes
/// elements [first, first + count) to `out`, count * element_bytes bytes.
void Unshuffle(const std::byte* planes, std::size_t elements, std::size_t element_bytes,
               std::size_t first, std::size_t count, std::byte* out);

}  // namespace patchbay::zarr

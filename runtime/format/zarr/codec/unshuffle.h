// Elements whose bytes a byte shuffle has put apart, together again.
#pragma once

#include <cstddef>

#include "runtime/format/zarr/codec/strided_copy.h"

namespace patchbay::zarr {

/// `planes` holds the first bytes of all `elements`, then their second bytes, and so on. Writes
/// elements [first, first + count) to `out`, count * element_bytes bytes.
void Unshuffle(const std::byte* planes, std::size_t elements, std::size_t element_bytes,
               std::size_t first, std::size_t count, std::byte* out);

/// Copies the box of a plan whose lines are runs of elements on both sides, from `elements`
/// elements in planes. The box begins at element `first`; the plan's offsets are those of whole
/// elements.
void UnshuffleBox(const CopyPlan& plan, const std::byte* planes, std::size_t elements,
                  std::size_t first, std::byte* out);

}  // namespace patchbay::zarr

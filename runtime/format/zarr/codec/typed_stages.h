// The stages of a chain that work on numbers: byte order, delta, fixed scale and offset.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/metadata.h"

namespace patchbay::zarr {

/// Element type of the bytes below the typed codecs.
DType StoredDType(const CodecChain& chain, DType dtype);

/// Runs the first `typed` codecs of the chain backwards over `in`; native elements of `dtype` go to
/// `out`, which must not be where `in` lies.
Status DecodeTyped(const CodecChain& chain, std::size_t typed, DType dtype,
                   std::span<const std::byte> in, std::vector<std::byte>& out);

}  // namespace patchbay::zarr

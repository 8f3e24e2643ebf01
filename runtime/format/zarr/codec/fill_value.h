// Fill values as metadata spells them: numbers, "NaN", "Infinity", "-Infinity", hex bits, null.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::zarr {

/// One element in native byte order; zero bytes for null. InvalidArgument when the value is not of
/// the type or does not fit it.
StatusOr<std::vector<std::byte>> ParseFillValue(const Json& value, DType dtype,
                                                std::string_view what);

}  // namespace patchbay::zarr

// One value of a tensor or store as bytes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "runtime/core/dtype.h"

namespace patchbay {

/// One element in native byte order; the first SizeOf(dtype) bytes count, the others are 0.
using Element = std::array<std::byte, 8>;

/// `value` as an element of that type. For integers only whole numbers in range; for floats every
/// finite number in range, rounded to nearest; nullopt for anything else.
std::optional<Element> ElementOf(double value, DType dtype);

/// "-32768 to 32767": the range of an element, for messages.
std::string RangeOf(DType dtype);

}  // namespace patchbay

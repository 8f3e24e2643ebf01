// JSON texts too large to be held as one value: objects are handed over while the text is read.
#pragma once

#include <functional>
#include <string_view>

#include "runtime/format/json/json.h"

namespace patchbay {

/// Sees every object of the text, inner ones first, as soon as its last brace is read. True: it has
/// served, and nothing of it is kept (null stands in its place in the object around it). An error
/// ends the reading.
using TakeObject = std::function<StatusOr<bool>(Json& object)>;

/// Reads the whole text and returns the part that was not taken. InvalidArgument as from ParseJson,
/// with the same limit of depth; never throws.
StatusOr<Json> ParseJsonTaking(std::string_view text, std::string_view what,
                               const TakeObject& take);

}  // namespace patchbay

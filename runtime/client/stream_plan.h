// What a trainer needs to know of a stream's plan: counts, the shape of a patch, and the digest
// that names it.
#pragma once

#include <string>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/base/stream_geometry.h"
#include "runtime/client/stream.h"

namespace patchbay::client {

struct StreamPlan {
  std::string text;
  Digest digest;  ///< of the text, computed here
  StreamGeometry geometry;
  PatchLayout patch;
};

/// From the result of a stream's planning task. InvalidArgument when a part is missing or the parts
/// contradict each other.
StatusOr<StreamPlan> ParseStreamPlan(const std::string& result);

}  // namespace patchbay::client

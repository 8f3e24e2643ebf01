// Does a drawn line cross itself?
#pragma once

#include <optional>

#include "workers/annotations/annotation.h"

namespace patchbay::workers {

/// Whether two edges of a polygon's rings cross (not merely touch). nullopt: so many edges lie
/// beside one another that it was not found out.
std::optional<bool> CrossesItself(const Polygon& polygon);

}  // namespace patchbay::workers

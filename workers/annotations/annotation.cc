#include "workers/annotations/annotation.h"

#include <cmath>

namespace patchbay::workers {

Status AnnotationLimits::Add(const Vertex& vertex) {
  const bool is_near = std::abs(vertex.x) <= kMaxCoordinate && std::abs(vertex.y) <= kMaxCoordinate;
  if (!is_near) {  // also where one is not a number
    return absl::InvalidArgumentError(
        StrCat("coordinate (", vertex.x, ", ", vertex.y, ") is not a pixel of a slide"));
  }
  if (++vertices_ <= kMaxVertices) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("more than ", kMaxVertices, " vertices"));
}

Status AnnotationLimits::AddOutline() {
  if (++outlines_ <= kMaxOutlines) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("more than ", kMaxOutlines, " annotations"));
}

}  // namespace patchbay::workers

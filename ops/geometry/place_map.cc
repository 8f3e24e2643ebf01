#include "ops/geometry/place_map.h"

namespace patchbay::ops {

PlaceMap PlaceMap::After(const PlaceMap& inner) const {
  return {yy * inner.yy + yx * inner.xy,      yy * inner.yx + yx * inner.xx,
          yy * inner.y0 + yx * inner.x0 + y0, xy * inner.yy + xx * inner.xy,
          xy * inner.yx + xx * inner.xx,      xy * inner.y0 + xx * inner.x0 + x0};
}

bool PlaceMap::IsIdentity() const {
  return yy == 1 && yx == 0 && y0 == 0 && xy == 0 && xx == 1 && x0 == 0;
}

Status CheckVolumeBorder(Border border) {
  if (border == Border::kReflect101) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "border: for 2-D images only; a volume is read as far as it is moved, and patch.fill lies "
      "outside");
}

BorderFold FoldOf(Border border, std::int64_t pixels) {
  constexpr float kBeyond = 0x1p24f;  // a period that no coordinate reaches
  const auto last = static_cast<float>(pixels - 1);
  switch (border) {
    case Border::kReflect101:
      if (pixels > 1) return {0, 2 * last, 1 / (2 * last), last};
      break;
    case Border::kReflect:
      return {0.5f, 2 * (last + 1), 1 / (2 * (last + 1)), last};
    case Border::kEdge:
      break;
  }
  return {0, kBeyond, 0, last};
}

}  // namespace patchbay::ops

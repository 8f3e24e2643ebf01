#include "ops/geometry/image_moves.h"

#include <algorithm>

namespace patchbay::ops {
namespace {

AffineMap InFloat(const PlaceMap& map) {
  const auto f = [](double v) { return static_cast<float>(v); };
  return {f(map.yy), f(map.yx), f(map.y0), f(map.xy), f(map.xx), f(map.x0)};
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

}  // namespace

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
  return InvalidArgument(
      "border: for 2-D images only; a volume is read as far as it is moved, and patch.fill lies "
      "outside");
}

WindowMap ImageComposition::Window() const {
  WindowMap window;
  window.out_height = height;
  window.out_width = width;
  window.transpose = yj_ != 0;
  window.reverse_y = yi_ + yj_ < 0;
  window.reverse_x = xi_ + xj_ < 0;
  const PixelPlace first = At({0, 0}), last = At({height - 1, width - 1});
  window.source_y = std::min(first.y, last.y);
  window.source_x = std::min(first.x, last.x);
  return window;
}

PlaceMap ImageComposition::Places() const {
  const auto d = [](std::int64_t v) { return static_cast<double>(v); };
  return PlaceMap{d(yi_), d(yj_), d(sy_), d(xi_), d(xj_), d(sx_)}.After(between_);
}

PatchGeometry ImageMoves::Draw(const DrawKey& key) const {
  const std::int64_t rows = patch_.y + 2 * margin_y_, columns = patch_.x + 2 * margin_x_;
  ImageComposition composition(rows, columns);
  for (const auto& [occurrence, move] : moves_) move(ParameterKey(key, occurrence), composition);
  PatchGeometry geometry;
  geometry.window = composition.Window();
  geometry.field = composition.field;
  const int points = geometry.field.points;
  geometry.whole_pixels = composition.between_.IsIdentity() && points == 0;
  if (geometry.whole_pixels) return geometry;
  geometry.map = InFloat(composition.Places());
  geometry.fold_y = FoldOf(border_, rows);
  geometry.fold_x = FoldOf(border_, columns);
  if (points != 0) {
    // An axis of one pixel has nothing to bend.
    const auto inverse = [points](std::int64_t side) {
      return side == 1 ? 0.0f : static_cast<float>(1 / FieldSpacing(points, side));
    };
    geometry.inverse_spacing_y = inverse(composition.height);
    geometry.inverse_spacing_x = inverse(composition.width);
  }
  return geometry;
}

}  // namespace patchbay::ops

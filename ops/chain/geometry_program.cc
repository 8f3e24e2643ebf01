#include "ops/chain/geometry_program.h"

#include <algorithm>
#include <iterator>

namespace patchbay::ops {
namespace {

/// The map out -> in of an image under the ops applied so far, as y = sy + yi * i + yj * j and
/// likewise x. Its coefficients are -1, 0 or 1.
struct PixelMap {
  std::int64_t sy = 0, yi = 1, yj = 0;
  std::int64_t sx = 0, xi = 0, xj = 1;

  PixelPlace At(PixelPlace p) const { return {sy + yi * p.y + yj * p.x, sx + xi * p.y + xj * p.x}; }

  /// This map after `source`, an op's own out -> in function.
  template <typename Source>
  PixelMap Then(const Source& source) const {
    const PixelPlace origin = At(source({0, 0})), down = At(source({1, 0})),
                     right = At(source({0, 1}));
    return {origin.y, down.y - origin.y, right.y - origin.y,
            origin.x, down.x - origin.x, right.x - origin.x};
  }

  PlaceMap AsPlaces() const {
    const auto d = [](std::int64_t v) { return static_cast<double>(v); };
    return {d(yi), d(yj), d(sy), d(xi), d(xj), d(sx)};
  }
};

WindowMap WindowOf(const PixelMap& map, std::int64_t height, std::int64_t width) {
  WindowMap window;
  window.out_height = height;
  window.out_width = width;
  window.transpose = map.yj != 0;
  window.reverse_y = map.yi + map.yj < 0;
  window.reverse_x = map.xi + map.xj < 0;
  const PixelPlace first = map.At({0, 0}), last = map.At({height - 1, width - 1});
  window.source_y = std::min(first.y, last.y);
  window.source_x = std::min(first.x, last.x);
  return window;
}

AffineMap InFloat(const PlaceMap& map) {
  const auto f = [](double v) { return static_cast<float>(v); };
  return {f(map.yy), f(map.yx), f(map.y0), f(map.xy), f(map.xx), f(map.x0)};
}

}  // namespace

void GeometryProgram::Add(const plan::OpStep& step) {
  static constexpr struct {
    plan::OpNumber op;
    decltype(Step::op) (*read)(const Json& options);
  } kOps[] = {
      {FlipOptions::kNumber,
       [](const Json& o) -> decltype(Step::op) { return plan::ReadOptions<FlipOptions>(o); }},
      {Rotate90Options::kNumber,
       [](const Json&) -> decltype(Step::op) { return Rotate90Options{}; }},
      {CropOptions::kNumber,
       [](const Json& o) -> decltype(Step::op) { return plan::ReadOptions<CropOptions>(o); }},
      {AffineOptions::kNumber,
       [](const Json& o) -> decltype(Step::op) { return plan::ReadOptions<AffineOptions>(o); }},
      {ElasticOptions::kNumber,
       [](const Json& o) -> decltype(Step::op) { return plan::ReadOptions<ElasticOptions>(o); }},
  };
  const auto* row = std::find_if(std::begin(kOps), std::end(kOps),
                                 [&step](const auto& each) { return each.op == step.op->number; });
  if (row == std::end(kOps)) return;
  const Step& added = steps_.emplace_back(Step{plan::Occurrence(step), row->read(step.options)});
  if (const auto* crop = std::get_if<CropOptions>(&added.op)) {
    margin_y_ += crop->margin[0];
    margin_x_ += crop->margin[1];
  }
  if (!step.op->needs.between) return;
  samples_between_ = true;
  if (const auto* affine = std::get_if<AffineOptions>(&added.op)) border_ = affine->border;
  if (const auto* elastic = std::get_if<ElasticOptions>(&added.op)) border_ = elastic->border;
}

PatchGeometry GeometryProgram::Draw(const DrawKey& key) const {
  PatchGeometry geometry;
  PixelMap map;
  PlaceMap between;  // of the finished patch, before `map`
  std::int64_t height = patch_.y + 2 * margin_y_, width = patch_.x + 2 * margin_x_;
  for (const Step& step : steps_) {
    DrawKey own = key;
    own.op_occurrence = step.occurrence;
    own.stream = DrawStream::kParameters;
    if (const auto* flip = std::get_if<FlipOptions>(&step.op)) {
      map = map.Then(FlipSource{DrawFlip(*flip, own), height, width});
    } else if (const auto* crop = std::get_if<CropOptions>(&step.op)) {
      map = map.Then(CropSource{DrawCrop(*crop, own)});
      height -= 2 * crop->margin[0];
      width -= 2 * crop->margin[1];
    } else if (const auto* affine = std::get_if<AffineOptions>(&step.op)) {
      between = between.After(DrawAffine(*affine, own, height, width));
    } else if (const auto* elastic = std::get_if<ElasticOptions>(&step.op)) {
      geometry.elastic = DrawElastic(*elastic, own);
    } else {
      map = map.Then(Rotate90Source{DrawRotate90(own), height, width});
    }
  }
  geometry.window = WindowOf(map, height, width);
  geometry.whole_pixels = between.IsIdentity() && geometry.elastic.points == 0;
  if (geometry.whole_pixels) return geometry;
  geometry.map = InFloat(map.AsPlaces().After(between));
  geometry.fold_y = FoldOf(border_, patch_.y + 2 * margin_y_);
  geometry.fold_x = FoldOf(border_, patch_.x + 2 * margin_x_);
  if (geometry.elastic.points != 0) {
    const int points = geometry.elastic.points;
    // An axis of one pixel has nothing to bend.
    const auto inverse = [points](std::int64_t side) {
      return side == 1 ? 0.0f : static_cast<float>(1 / ElasticSpacing(points, side));
    };
    geometry.inverse_spacing_y = inverse(height);
    geometry.inverse_spacing_x = inverse(width);
  }
  return geometry;
}

}  // namespace patchbay::ops

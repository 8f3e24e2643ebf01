#include "ops/geometry/affine.h"

#include "ops/lanes/fixed_math.h"

namespace patchbay::ops {

PlaceMap PlaceMap::After(const PlaceMap& inner) const {
  return {yy * inner.yy + yx * inner.xy,      yy * inner.yx + yx * inner.xx,
          yy * inner.y0 + yx * inner.x0 + y0, xy * inner.yy + xx * inner.xy,
          xy * inner.yx + xx * inner.xx,      xy * inner.y0 + xx * inner.x0 + x0};
}

bool PlaceMap::IsIdentity() const {
  return yy == 1 && yx == 0 && y0 == 0 && xy == 0 && xx == 1 && x0 == 0;
}

double Drawn(const plan::DrawRange& range, std::uint32_t word) {
  return range.low + (range.high - range.low) * double{UniformFloat(word)};
}

PlaceMap DrawAffine(const plan::AffineOptions& options, const DrawKey& key, std::int64_t height,
                    std::int64_t width) {
  const PhiloxBlock linear = Draw(key, 0), shift = Draw(key, 1);
  if (!(UniformFloat(linear.word[0]) < options.p)) return {};
  const SineAndCosine turn = FixedSinCos(Drawn(options.degrees[0], linear.word[1]));
  const double scale = Drawn(options.scale, linear.word[2]);
  const SineAndCosine shear = FixedSinCos(Drawn(options.shear, linear.word[3]));
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const double ty = options.translate_y * h, tx = options.translate_x * w;
  const double to_y = (h - 1) / 2 + Drawn({-ty, ty}, shift.word[0]);
  const double to_x = (w - 1) / 2 + Drawn({-tx, tx}, shift.word[1]);
  // Forward: place = centre + shift + R S H (source - centre), with H = [[1, -tan], [0, 1]] of
  // (x, y). Backward: H^-1 S^-1 R^-1.
  const double slope = shear.sine / shear.cosine, c = turn.cosine / scale, s = turn.sine / scale;
  PlaceMap map;
  map.yy = c;
  map.yx = -s;
  map.xy = s + slope * c;
  map.xx = c - slope * s;
  map.y0 = (h - 1) / 2 - map.yy * to_y - map.yx * to_x;
  map.x0 = (w - 1) / 2 - map.xy * to_y - map.xx * to_x;
  return map;
}

ElasticField DrawElastic(const plan::ElasticOptions& options, const DrawKey& key) {
  ElasticField field;
  if (options.amplitude == 0 || !(UniformFloat(Draw(key, 0).word[0]) < options.p)) return field;
  field.points = options.points;
  DrawKey own = key;
  own.stream = DrawStream::kField;
  const plan::DrawRange range{-options.amplitude, options.amplitude};
  constexpr int kLocked = plan::kLockedElasticPoints;
  for (int y = kLocked; y < options.points - kLocked; ++y) {
    for (int x = kLocked; x < options.points - kLocked; ++x) {
      const auto point = static_cast<std::size_t>(y * options.points + x);
      const PhiloxBlock block = Draw(own, static_cast<std::uint32_t>(point));
      field.dy[point] = static_cast<float>(Drawn(range, block.word[0]));
      field.dx[point] = static_cast<float>(Drawn(range, block.word[1]));
    }
  }
  return field;
}

BorderFold FoldOf(plan::Border border, std::int64_t pixels) {
  constexpr float kBeyond = 0x1p24f;  // a period that no coordinate reaches
  const auto last = static_cast<float>(pixels - 1);
  switch (border) {
    case plan::Border::kReflect101:
      if (pixels > 1) return {0, 2 * last, 1 / (2 * last), last};
      break;
    case plan::Border::kReflect:
      return {0.5f, 2 * (last + 1), 1 / (2 * (last + 1)), last};
    case plan::Border::kEdge:
      break;
  }
  return {0, kBeyond, 0, last};
}

}  // namespace patchbay::ops

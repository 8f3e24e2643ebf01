#include "ops/affine/affine.h"

#include <array>

#include "ops/draws/draws.h"
#include "ops/lanes/fixed_math.h"

namespace patchbay::ops {

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

std::optional<VolumeTurn> DrawTurn(const plan::AffineOptions& options, const DrawKey& key,
                                   const Extent& patch) {
  const PhiloxBlock block = Draw(key, 0);
  if (!(UniformFloat(block.word[0]) < options.p)) return std::nullopt;
  VolumeTurn turn;
  const std::array<std::int64_t, 3> side = {patch.z, patch.y, patch.x};
  const double scale = Drawn(options.scale, Draw(key, 1).word[0]);
  for (std::size_t a = 0; a < 3; ++a) {
    const bool turns = side[(a + 1) % 3] > 1 && side[(a + 2) % 3] > 1;
    if (turns) turn.degrees[a] = Drawn(options.degrees[a], block.word[1 + a]);
    if (side[a] > 1) turn.scale[a] = scale;
  }
  return turn;
}

}  // namespace patchbay::ops

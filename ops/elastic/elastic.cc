#include "ops/elastic/elastic.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/draws/draws.h"

namespace patchbay::ops {

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

VolumeField DrawField(const plan::ElasticOptions& options, const DrawKey& key,
                      const plan::PerAxis& amplitude, const Extent& patch) {
  VolumeField field;
  if (!(UniformFloat(Draw(key, 0).word[0]) < options.p)) return field;
  const std::array<std::int64_t, 3> sides = {patch.z, patch.y, patch.x};
  const std::array<double, 3> reach = {amplitude.z, amplitude.y, amplitude.x};
  const int n = field.points = options.points;
  for (std::size_t a = 0; a < 3; ++a) {
    field.moves[a].assign(static_cast<std::size_t>(n * n * n), 0.0f);
    if (sides[a] > 1) {
      field.inverse_spacing[a] =
          static_cast<float>(1 / plan::ElasticSpacing(options.points, sides[a]));
    }
  }
  DrawKey own = key;
  own.stream = DrawStream::kField;
  // An axis of one voxel has nothing to bend: all its control points draw, none is locked.
  const auto locked = [&](int at, std::size_t axis) {
    return sides[axis] > 1 &&
           (at < plan::kLockedElasticPoints || at >= n - plan::kLockedElasticPoints);
  };
  for (int i = 0; i < n * n * n; ++i) {
    if (locked(i / (n * n), 0) || locked(i / n % n, 1) || locked(i % n, 2)) continue;
    const PhiloxBlock block = Draw(own, static_cast<std::uint32_t>(i));
    for (std::size_t a = 0; a < 3; ++a) {
      if (sides[a] == 1) continue;
      field.moves[a][static_cast<std::size_t>(i)] =
          static_cast<float>(Drawn({-reach[a], reach[a]}, block.word[a]));
    }
  }
  return field;
}

}  // namespace patchbay::ops

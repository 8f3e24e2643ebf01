#include "ops/chain/drawn_volume.h"

#include <algorithm>
#include <utility>

#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/geometry/resample.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::ops {
namespace {

std::size_t AddBlur(const PatchBlur& from, DeviceLists& lists, DeviceBlur& blur) {
  blur.radius = from.radius;
  if (from.radius == 0) return 0;
  return lists.Add(std::span(from.weight).first(static_cast<std::size_t>(2 * from.radius + 1)));
}

void SetGeometry(const VolumeGeometry& from, const VolumeItem& item, DeviceLists& lists,
                 DrawnVolume& drawn) {
  DeviceGeometry& to = drawn.volume.geometry;
  to.d_source = item.d_source;
  to.source = DeviceExtentOf(from.source.Shape());
  to.whole_voxels = from.whole_voxels;
  std::copy(from.mirrored, from.mirrored + 3, to.mirrored);
  to.map = from.map;
  if (from.whole_voxels) return;
  to.points = from.field.points;
  std::copy(from.field.inverse_spacing, from.field.inverse_spacing + 3, to.inverse_spacing);
  std::vector<float> moves;
  for (const auto& along : from.field.moves) moves.insert(moves.end(), along.begin(), along.end());
  if (to.points != 0) drawn.moves = lists.Add<float>(moves);
}

void SetSmooth(const VolumeGeometry& from, DeviceLists& lists, DrawnVolume& drawn) {
  if (from.whole_voxels) return;
  for (int axis = 0; axis < 3; ++axis) {
    if (!(from.smooth[axis] > 0)) continue;
    drawn.smooths = true;
    drawn.smooth[axis] =
        AddBlur(BlurOf(from.smooth[axis]), lists, drawn.volume.geometry.smooth[axis]);
  }
}

void SetIntensity(const VolumeIntensity& from, const Extent& patch, DeviceLists& lists,
                  DrawnVolume& drawn) {
  DeviceVolume& to = drawn.volume;
  to.tone = from.tone;
  to.noise = from.noise;
  to.brightness = from.brightness;
  to.contrast = from.contrast;
  drawn.blur = AddBlur(from.blur, lists, to.blur);
  if (from.coarse != patch) {
    std::vector<CoarseTap> taps = CoarseTaps(patch.z, from.coarse.z);
    for (const auto& [side, coarse] :
         {std::pair(patch.y, from.coarse.y), {patch.x, from.coarse.x}}) {
      const auto more = CoarseTaps(side, coarse);
      taps.insert(taps.end(), more.begin(), more.end());
    }
    drawn.taps = lists.Add<CoarseTap>(taps);
  }
  std::vector<DeviceGamma> gammas;
  for (const DrawnGamma& gamma : from.gammas) {
    gammas.push_back({static_cast<float>(gamma.exponent), gamma.retain_stats, gamma.invert});
  }
  to.gammas = static_cast<int>(gammas.size());
  if (!gammas.empty()) drawn.gammas = lists.Add<DeviceGamma>(gammas);
  drawn.in_planes = to.blur.radius != 0 || to.contrast != 1 || drawn.taps != 0 || !gammas.empty();
}

}  // namespace

void Refer(const DeviceLists& lists, DrawnVolume& drawn) {
  DeviceVolume& volume = drawn.volume;
  volume.geometry.d_moves = lists.At<float>(drawn.moves);
  for (int axis = 0; axis < 3; ++axis) {
    volume.geometry.smooth[axis].d_weight = lists.At<float>(drawn.smooth[axis]);
  }
  volume.blur.d_weight = lists.At<float>(drawn.blur);
  volume.d_taps = lists.At<CoarseTap>(drawn.taps);
  volume.d_gammas = lists.At<DeviceGamma>(drawn.gammas);
}

DrawnVolume DrawVolume(const Chain& chain, const VolumeItem& item, DeviceLists& lists) {
  DrawnVolume drawn;
  drawn.volume.d_out = item.d_out;
  const VolumeGeometry geometry = chain.DrawVolume(item.key, item.facts);
  SetGeometry(geometry, item, lists, drawn);
  SetSmooth(geometry, lists, drawn);
  SetIntensity(chain.DrawIntensity(item.key, item.facts), chain.options().patch, lists, drawn);
  return drawn;
}

DrawnVolume DrawVolumeLabels(const Chain& chain, const VolumeItem& item, DeviceLists& lists) {
  DrawnVolume drawn;
  drawn.volume.d_out = item.d_out;
  SetGeometry(chain.DrawVolume(item.key, item.facts), item, lists, drawn);
  return drawn;
}

std::size_t VolumeParameterBytes(const Chain& chain) {
  const Extent& patch = chain.options().patch;
  const auto points = static_cast<std::size_t>(chain.volume().moves().points());
  const std::size_t moves = 3 * points * points * points * sizeof(float);
  const std::size_t weights = 4 * (2 * kMaxBlurRadius + 1) * sizeof(float);
  const auto taps = static_cast<std::size_t>(patch.z + patch.y + patch.x) * sizeof(CoarseTap);
  const std::size_t gammas = plan::kMaxOps * sizeof(DeviceGamma);
  return sizeof(DeviceVolume) + moves + weights + taps + gammas + 7 * DeviceLists::kAlign;
}

}  // namespace patchbay::ops

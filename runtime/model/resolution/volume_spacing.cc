#include "runtime/model/resolution/volume_spacing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

using Axes = std::array<double, 3>;

/// Values of patch.resample.anisotropic.
constexpr char kTogether[] = "together", kSeparateZ[] = "separate_z";

constexpr std::array<const char*, 3> kAxisNames = {"z", "y", "x"};

Axes AxesOf(const PerAxis& v) { return {v.z, v.y, v.x}; }
PerAxis PerAxisOf(const Axes& v) { return {v[0], v[1], v[2]}; }

Status WrongSpacing(std::string_view cause) {
  return InvalidArgument("key 'patch.spacing': ", cause);
}

struct Level : VolumeLevel {
  int index = 0;
  Axes mm;
};

/// The largest over the axes.
double SpacingDeviation(const Level& level, const Axes& wanted) {
  double most = 0;
  for (std::size_t a = 0; a < 3; ++a) most = std::max(most, std::abs(level.mm[a] / wanted[a] - 1));
  return most;
}

StatusOr<std::vector<Level>> LevelsOf(std::span<const VolumeLevel> listed, const Spacing& spacing) {
  std::vector<Level> levels;
  for (const VolumeLevel& level : listed) {
    const StatusOr<PerAxis> mm = SpacingOfLevel(spacing, level);
    if (!mm.ok()) return WrongSpacing(StrCat(MessageOf(mm.status()), "; use patch.level"));
    levels.push_back({level, static_cast<int>(levels.size()), AxesOf(*mm)});
  }
  return levels;
}

/// The coarsest level that loses nothing along any axis.
const Level& FinerOf(const std::vector<Level>& levels, const Axes& wanted) {
  const auto loses = [&](const Level& level) {
    for (std::size_t a = 0; a < 3; ++a) {
      if (level.mm[a] > std::max(wanted[a], levels.front().mm[a])) return true;
    }
    return false;
  };
  const auto found = std::find_if_not(levels.rbegin(), levels.rend(), loses);
  return found == levels.rend() ? levels.front() : *found;
}

ChosenSpacing Chosen(const Level& level, const Extent& patch, const Axes& mm, const PerAxis& step) {
  ChosenSpacing chosen;
  chosen.view = {.level = level.index,
                 .size = level.size,
                 .source = SourceSides(patch, step),
                 .downsample_y = level.downsample.y,
                 .downsample_x = level.downsample.x,
                 .downsample_z = level.downsample.z};
  chosen.spacing = PerAxisOf(mm);
  chosen.step = step;
  return chosen;
}

}  // namespace

bool IsStep(const PerAxis& step) {
  const Axes axes = AxesOf(step);
  return std::all_of(axes.begin(), axes.end(),
                     [](double s) { return s >= kMinStep && s <= kMaxStep; });
}

int CoarseAxis(const PerAxis& from, const PerAxis& to) {
  constexpr double kAnisotropic = 3, kSame = 1e-6;
  for (const PerAxis& spacing : {from, to}) {
    const Axes mm = AxesOf(spacing);
    const auto [least, most] = std::minmax_element(mm.begin(), mm.end());
    if (!(*most / *least > kAnisotropic)) continue;
    const double coarse_mm = *most * (1 - kSame);
    const auto coarse =
        std::count_if(mm.begin(), mm.end(), [coarse_mm](double side) { return side > coarse_mm; });
    return coarse == 1 ? static_cast<int>(most - mm.begin()) : kNoAxis;
  }
  return kNoAxis;
}

config::Key ResampleKey() {
  return {.name = "resample",
          .type = config::KeyType::kMap,
          .help = "how patches of another spacing are made",
          .members = {{.name = "anisotropic",
                       .type = config::KeyType::kChoice,
                       .fallback = kTogether,
                       .choices = {kTogether, kSeparateZ},
                       .help = "separate_z: along the one coarse axis of a volume, the nearest "
                               "voxel (nnU-Net's rule)"}}};
}

bool SeparatesZ(const Json& resample) { return resample["anisotropic"] == kSeparateZ; }

Status CheckTogether(const Json& resample) {
  if (!SeparatesZ(resample)) return absl::OkStatus();
  return InvalidArgument("resample: without a spacing no patch is resampled");
}

Json ResampleToJson(bool separate_z) {
  return {{"anisotropic", separate_z ? kSeparateZ : kTogether}};
}

StatusOr<PerAxis> SpacingOfLevel(const Spacing& spacing, const VolumeLevel& level) {
  if (!spacing.z || !spacing.y || !spacing.x) {
    return InvalidArgument("the image does not state a spacing in millimetres along z, y and x");
  }
  const PerAxis& down = level.downsample;
  return PerAxis{spacing.z->Micrometres() / 1000 * down.z, spacing.y->Micrometres() / 1000 * down.y,
                 spacing.x->Micrometres() / 1000 * down.x};
}

StatusOr<ChosenSpacing> ChooseSpacing(const WantedSpacing& wanted,
                                      std::span<const VolumeLevel> listed, const Spacing& spacing) {
  PB_ASSIGN_OR_RETURN(const std::vector<Level> levels, LevelsOf(listed, spacing));
  const Axes mm = AxesOf(wanted.mm);
  const auto nearest = std::min_element(levels.begin(), levels.end(), [&](auto& a, auto& b) {
    return SpacingDeviation(a, mm) < SpacingDeviation(b, mm);
  });
  if (SpacingDeviation(*nearest, mm) <= wanted.tolerance) {
    return Chosen(*nearest, wanted.patch, nearest->mm, {});
  }
  for (std::size_t a = 0; a < 3; ++a) {
    const double finest = levels.front().mm[a];
    if (wanted.upsample || finest <= mm[a] * (1 + wanted.tolerance)) continue;
    return WrongSpacing(StrCat(mm[a], " mm along ", kAxisNames[a], " is finer than the volume, of ",
                               finest, " mm; ask for no less, or set patch.upsample: true"));
  }
  const Level& level = FinerOf(levels, mm);
  const PerAxis step = {mm[0] / level.mm[0], mm[1] / level.mm[1], mm[2] / level.mm[2]};
  if (IsStep(step)) {
    ChosenSpacing chosen = Chosen(level, wanted.patch, mm, step);
    if (wanted.separate_z) chosen.nearest_axis = CoarseAxis(PerAxisOf(level.mm), wanted.mm);
    return chosen;
  }
  return WrongSpacing(StrCat("a patch has one voxel for ", step.z, " x ", step.y, " x ", step.x,
                             " of level ", level.index, ": not in ", kMinStep, "..", kMaxStep));
}

}  // namespace patchbay::plan

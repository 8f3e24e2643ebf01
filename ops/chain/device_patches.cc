#include "ops/chain/device_patches.h"

#include <algorithm>
#include <bit>

#include "ops/chain/step_lists.h"
#include "ops/geometry/pixels.h"
#include "ops/geometry/resample.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::ops {
namespace {

SourceType SourceTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kUint16:
      return SourceType::kUint16;
    case DType::kInt16:
      return SourceType::kInt16;
    case DType::kFloat32:
      return SourceType::kFloat32;
    default:
      return SourceType::kUint8;
  }
}

PatchShape PatchShapeOf(const Chain& chain) {
  const ChainOptions& options = chain.options();
  PatchShape shape;
  shape.patch = DeviceExtentOf(options.patch);
  shape.channels = options.channels;
  shape.planar = options.layout == PatchLayout::kNchw;
  shape.in_depth = chain.is_volume();
  shape.to = *CastTarget(options.dtype);
  shape.source = SourceTypeOf(options.source_dtype);
  return shape;
}

/// Scratch of one patch, in the order in which it lies there.
struct Scratch {
  std::uint64_t smooth = 0;  ///< one of the two blocks in float
  std::uint64_t plane = 0, sums = 0, lines = 0, before = 0, curves = 0;

  /// The second smooth block is done with when the planes are begun.
  std::uint64_t Total() const {
    return smooth + std::max(smooth, 2 * plane + sums + lines + before + curves);
  }
};

Scratch ScratchOf(const Chain& chain, std::uint64_t smoothed_voxels, bool in_planes) {
  const Extent& patch = chain.options().patch;
  const auto channels = static_cast<std::uint64_t>(chain.options().channels);
  const std::uint64_t rows = channels * static_cast<std::uint64_t>(patch.z * patch.y);
  const auto slots = static_cast<std::uint64_t>(chain.Program().whole_steps());
  Scratch scratch;
  scratch.smooth = AlignedForDevice(channels * smoothed_voxels * sizeof(float));
  if (!in_planes) return scratch;
  scratch.plane = AlignedForDevice(rows * static_cast<std::uint64_t>(patch.x) * sizeof(float));
  scratch.sums = AlignedForDevice(rows * sizeof(PatchSums));
  scratch.lines = AlignedForDevice(slots * channels * sizeof(LineWithin));
  scratch.before = AlignedForDevice(channels * sizeof(PatchStats));
  scratch.curves = AlignedForDevice(channels * kCurveBytes);
  return scratch;
}

/// A patch on its way to the GPU.
struct DrawnPatch {
  DeviceProgram program;
  std::vector<DevicePass> passes;  ///< the gather's, then one of every slot
  bool smooths = false, in_planes = false;

  Scratch ScratchIn(const Chain& chain) const {
    const auto voxels = static_cast<std::uint64_t>(smooths ? program.geometry.source.Voxels() : 0);
    return ScratchOf(chain, voxels, in_planes);
  }
};

void Place(const Scratch& scratch, std::byte* d_at, DrawnPatch& drawn) {
  DeviceProgram& program = drawn.program;
  std::byte* d_next = d_at + scratch.smooth;
  if (drawn.smooths) {
    program.geometry.d_smooth[0] = reinterpret_cast<float*>(d_at);
    program.geometry.d_smooth[1] = reinterpret_cast<float*>(d_next);
  }
  if (!drawn.in_planes) return;
  const auto take = [&d_next](std::uint64_t bytes) {
    return std::exchange(d_next, d_next + bytes);
  };
  for (float*& d_plane : program.d_planes) d_plane = reinterpret_cast<float*>(take(scratch.plane));
  program.d_row_sums = reinterpret_cast<PatchSums*>(take(scratch.sums));
  program.d_lines = reinterpret_cast<LineWithin*>(take(scratch.lines));
  program.d_before = reinterpret_cast<PatchStats*>(take(scratch.before));
  program.d_curves = take(scratch.curves);
}

DeviceBlur BlurOnDevice(const PatchBlur& from, DeviceParameters& parameters) {
  if (from.radius == 0) return {};
  const auto weights = std::span(from.weight).first(static_cast<std::size_t>(2 * from.radius + 1));
  return {from.radius, parameters.Add<float>(weights)};
}

/// The passes of a patch, one after another as its steps come.
class PassList {
 public:
  PassList(const Chain& chain, DeviceParameters& parameters, DrawnPatch& drawn)
      : chain_(chain), parameters_(parameters), drawn_(drawn) {
    drawn_.passes.resize(1 + static_cast<std::size_t>(chain.Program().whole_steps()));
  }

  Status Add(const std::vector<PatchStep>& steps) {
    for (const PatchStep& step : steps) {
      if (const auto* point = std::get_if<AnyPointStep>(&step)) {
        PB_ASSIGN_OR_RETURN(steps_.emplace_back(), parameters_.OnDevice(*point));
        last().end = static_cast<int>(steps_.size());
      } else {
        Begin(std::get<WholeStep>(step));
      }
    }
    last().to_slot = true;
    last().finishes = last().has_lines;
    drawn_.program.d_steps = parameters_.Add<AnyPointStep>(steps_);
    drawn_.program.d_passes = parameters_.Add<DevicePass>(drawn_.passes);
    return absl::OkStatus();
  }

 private:
  DevicePass& last() { return drawn_.passes[last_]; }

  void Begin(const WholeStep& whole) {
    drawn_.in_planes = true;
    DevicePass pass;
    std::visit(
        [&](const auto& step) {
          pass.form = std::decay_t<decltype(step)>::kForm;
          Fill(step, pass);
        },
        whole.step);
    // Sums and grey are of values, not of values that a line is still to be applied to.
    const bool reads_lines = pass.form != WholeForm::kGrey && pass.form != WholeForm::kLine;
    if (last().has_lines) {
      last().finishes = !reads_lines || last().begin != last().end;
      if (!last().finishes) pass.before = static_cast<int>(last_) - 1;
    }
    if (pass.form == WholeForm::kGrey) {
      last().sums_grey = true;
      last().white = pass.white;
      const std::vector<unsigned long long> none(
          static_cast<std::size_t>(chain_.options().patch.z));
      drawn_.program.d_grey = parameters_.Add<unsigned long long>(none);
    }
    pass.begin = pass.end = static_cast<int>(steps_.size());
    pass.from = last().to;
    pass.to = (pass.from + Planes(pass)) % 2;
    last_ = 1 + static_cast<std::size_t>(whole.slot);
    last() = pass;
  }

  /// Times that the values go from one plane to the other.
  static int Planes(const DevicePass& pass) {
    if (pass.form == WholeForm::kBlur) return pass.along[0] + pass.along[1] + pass.along[2];
    return pass.form == WholeForm::kCoarse ? 1 : 0;
  }

  template <typename Reduction>
  void Fill(const Reduction& step, DevicePass& pass) {
    pass.reduction = AnyStepOf<AnyReduction, Reductions>(step);
    if constexpr (Reduction::kForm == WholeForm::kGrey) {
      pass.white = step.white();
    } else if constexpr (Reduction::kForm == WholeForm::kCurve) {
      pass.retains = step.retain_stats;
      pass.inverts = step.invert;
      pass.has_lines = step.retain_stats || step.invert;
    } else {
      pass.has_lines = true;
    }
  }
  void Fill(const BlurStep& step, DevicePass& pass) {
    pass.blur = BlurOnDevice(step.blur, parameters_);
    std::copy(step.along, step.along + 3, pass.along);
  }
  void Fill(const CoarseStep& step, DevicePass& pass) {
    const Extent& patch = chain_.options().patch;
    std::vector<CoarseTap> taps;
    for (const auto& [side, coarse] :
         {std::pair(patch.z, step.size.z), {patch.y, step.size.y}, {patch.x, step.size.x}}) {
      const auto more = CoarseTaps(side, coarse);
      taps.insert(taps.end(), more.begin(), more.end());
    }
    pass.d_taps = parameters_.Add<CoarseTap>(taps);
  }

  const Chain& chain_;
  DeviceParameters& parameters_;
  DrawnPatch& drawn_;
  std::vector<AnyPointStep> steps_;
  std::size_t last_ = 0;  ///< the pass that the next step follows
};

void SetVolume(const VolumeGeometry& from, DeviceParameters& parameters, DeviceGeometry& to) {
  to.source = DeviceExtentOf(from.source.Shape());
  to.whole_voxels = from.whole_voxels;
  std::copy(from.mirrored, from.mirrored + 3, to.mirrored);
  to.map = from.map;
  if (from.whole_voxels) return;
  to.points = from.field.points;
  std::copy(from.field.inverse_spacing, from.field.inverse_spacing + 3, to.inverse_spacing);
  std::vector<float> moves;
  for (const auto& along : from.field.moves) moves.insert(moves.end(), along.begin(), along.end());
  if (to.points != 0) to.d_moves = parameters.Add<float>(moves);
}

/// Where a patch's values come from; its labels are not smoothed.
void SetGeometry(const Chain& chain, const PatchItem& item, bool of_labels,
                 DeviceParameters& parameters, DrawnPatch& drawn) {
  DeviceGeometry& to = drawn.program.geometry;
  to.d_source = item.d_source;
  drawn.program.d_out = item.d_out;
  if (!chain.is_volume()) {
    const PatchGeometry plane = chain.DrawGeometry(item.draw.key);
    to.source = DeviceExtentOf(chain.source_extent());
    to.d_plane = parameters.Add<PatchGeometry>(std::span(&plane, 1));
    return;
  }
  const VolumeGeometry geometry = chain.DrawVolume(item.draw.key, item.draw.facts);
  SetVolume(geometry, parameters, to);
  if (of_labels || geometry.whole_voxels) return;
  for (int axis = 0; axis < 3; ++axis) {
    if (!(geometry.smooth[axis] > 0)) continue;
    drawn.smooths = true;
    to.smooth[axis] = BlurOnDevice(BlurOf(geometry.smooth[axis]), parameters);
  }
}

/// Ends of the launches: where the next patch finds no place in the scratch, or there are enough.
std::vector<std::size_t> PlaceAll(const Chain& chain, std::span<DrawnPatch> drawn,
                                  DeviceArena& arena) {
  std::vector<std::size_t> ends;
  std::uint64_t used = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Scratch scratch = drawn[i].ScratchIn(chain);
    if (i - first == kLaunchSlices || used + scratch.Total() > arena.plane_bytes()) {
      ends.push_back(i);
      first = i;
      used = 0;
    }
    Place(scratch, arena.d_planes() + used, drawn[i]);
    used += scratch.Total();
  }
  ends.push_back(drawn.size());
  return ends;
}

/// Scratch for those patches, and where some are smoothed, whose sources differ in size, for later
/// launches too: that of a launch full of patches twice as large, and doubled when one patch has
/// more than scratch holds at once. The patches alone decide where the GPU has no memory for more.
Status FitScratch(const Chain& chain, std::span<const DrawnPatch> drawn, DeviceArena& arena) {
  std::uint64_t largest = 0, all = 0;
  bool smooths = false;
  for (const DrawnPatch& one : drawn) {
    const std::uint64_t bytes = one.ScratchIn(chain).Total();
    largest = std::max(largest, bytes);
    all += bytes;
    smooths |= one.smooths;
  }
  const std::uint64_t needed = std::max(largest, std::min(all, kPlaneBytesMax));
  if (!smooths || arena.plane_bytes() >= needed) return arena.FitPlanes(needed);
  const std::uint64_t of_full_launch = std::min(kPlaneBytesMax, 2 * largest * kLaunchSlices);
  const Status fits = arena.FitPlanes(std::max(std::bit_ceil(largest), of_full_launch));
  return absl::IsResourceExhausted(fits) ? arena.FitPlanes(needed) : fits;
}

const DeviceProgram* AddPrograms(std::span<const DrawnPatch> drawn, DeviceParameters& parameters) {
  std::vector<DeviceProgram> programs;
  for (const DrawnPatch& one : drawn) programs.push_back(one.program);
  return parameters.Add<DeviceProgram>(programs);
}

PatchLaunch LaunchOf(const Chain& chain, std::span<const DrawnPatch> drawn,
                     const DeviceProgram* d_patches) {
  PatchLaunch launch;
  launch.shape = PatchShapeOf(chain);
  launch.d_patches = d_patches;
  launch.count = static_cast<int>(drawn.size());
  for (const DrawnPatch& one : drawn) {
    if (!one.smooths) continue;
    launch.smooths = true;
    launch.smooth_voxels = std::max(
        launch.smooth_voxels, one.program.geometry.source.Voxels() * chain.options().channels);
  }
  return launch;
}

/// The pass of the patches in a slot.
WholeRun RunOf(std::span<const DrawnPatch> drawn, int slot) {
  WholeRun run;
  run.slot = slot;
  for (const DrawnPatch& one : drawn) {
    const DevicePass& pass = one.passes[1 + static_cast<std::size_t>(slot)];
    if (pass.form == WholeForm::kNone) continue;
    run.form = pass.form;
    std::copy(pass.along, pass.along + 3, run.along);
    run.retains |= pass.retains;
    run.finishes |= pass.finishes;
  }
  return run;
}

Status Launch(const Chain& chain, std::span<const DrawnPatch> drawn, const DeviceProgram* d_patches,
              DeviceArena& arena, memory::GpuStream stream) {
  const PatchLaunch launch = LaunchOf(chain, drawn, d_patches);
  PB_RETURN_IF_ERROR(LaunchOutcome("ops", LaunchGather(launch, stream)));
  arena.CountKernels(KernelsOf(launch));
  for (int slot = 0; slot < chain.Program().whole_steps(); ++slot) {
    const WholeRun run = RunOf(drawn, slot);
    if (run.form == WholeForm::kNone) continue;
    PB_RETURN_IF_ERROR(LaunchOutcome("ops", LaunchWhole(launch, run, stream)));
    arena.CountKernels(KernelsOf(run));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<AnyPointStep> DeviceParameters::OnDevice(const AnyPointStep& step) {
  StatusOr<AnyPointStep> moved = step;
  VisitStep(step, [&](const auto& one) {
    using Step = std::decay_t<decltype(one)>;
    Step own = one;
    if constexpr (HasValues<Step>::value) {
      own.values.at = AddShared(own.values);
      moved = PointStepOf(own);
    } else if constexpr (HasKept<Step>::value) {
      const std::span values(own.kept.at, static_cast<std::size_t>(own.kept.count));
      const auto d_values = arena_.Keep(*own.kept.digest, std::as_bytes(values), stream_);
      if (!d_values.ok()) {
        moved = d_values.status();
        return;
      }
      own.kept.at = reinterpret_cast<decltype(own.kept.at)>(*d_values);
      moved = PointStepOf(own);
    }
  });
  return moved;
}

Status DeviceParameters::Upload() {
  return bytes_.empty() ? absl::OkStatus() : arena_.Upload(bytes_, stream_).status();
}

std::size_t ParameterBytes(const Chain& chain) {
  const Extent& patch = chain.options().patch;
  const ChainProgram& program = chain.Program();
  const auto points = static_cast<std::size_t>(program.volumes().points());
  const std::size_t geometry =
      chain.is_volume() ? 3 * points * points * points * sizeof(float) : sizeof(PatchGeometry);
  const std::size_t weights = 4 * (2 * kMaxBlurRadius + 1) * sizeof(float);
  const auto taps = static_cast<std::size_t>(patch.z + patch.y + patch.x) * sizeof(CoarseTap);
  const auto grey = static_cast<std::size_t>(patch.z) * sizeof(unsigned long long);
  const auto slots = static_cast<std::size_t>(program.whole_steps());
  const std::size_t passes = (1 + slots) * sizeof(DevicePass);
  const std::size_t steps = program.most_point_steps() * sizeof(AnyPointStep);
  const std::size_t whole = slots == 0 ? 0 : taps + grey;
  return sizeof(DeviceProgram) + geometry + weights + whole + passes + steps +
         10 * DeviceParameters::kAlign;
}

std::size_t SharedParameterBytes(const Chain& chain) {
  return chain.Program().shared_bytes() + DeviceParameters::kAlign;
}

std::uint64_t ScratchBytes(const Chain& chain, std::size_t patches) {
  constexpr std::uint64_t kSmoothedVoxels = 8;  // voxels of a source for each voxel of its patch
  const bool in_planes = chain.Program().whole_steps() != 0;
  const std::uint64_t smoothed =
      chain.options().kind == plan::PatchKind::kResampled
          ? kSmoothedVoxels * static_cast<std::uint64_t>(chain.options().patch.Pixels())
          : 0;
  const std::uint64_t unsmoothed = ScratchOf(chain, 0, in_planes).Total();
  const std::uint64_t one = ScratchOf(chain, smoothed, in_planes).Total();
  return std::max(unsmoothed,
                  std::min(kPlaneBytesMax, one * std::min<std::size_t>(patches, kLaunchSlices)));
}

Status LaunchPatches(const Chain& chain, std::span<const PatchItem> patches, DeviceArena& arena,
                     memory::GpuStream stream) {
  DeviceParameters parameters(arena, stream);
  std::vector<DrawnPatch> drawn(patches.size());
  for (std::size_t i = 0; i < patches.size(); ++i) {
    SetGeometry(chain, patches[i], false, parameters, drawn[i]);
    PB_RETURN_IF_ERROR(PassList(chain, parameters, drawn[i]).Add(chain.DrawSteps(patches[i].draw)));
  }
  PB_RETURN_IF_ERROR(FitScratch(chain, drawn, arena));
  const std::vector<std::size_t> ends = PlaceAll(chain, drawn, arena);
  const DeviceProgram* const d_patches = AddPrograms(drawn, parameters);
  PB_RETURN_IF_ERROR(parameters.Upload());
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    PB_RETURN_IF_ERROR(Launch(chain, std::span(drawn).subspan(first, end - first),
                              d_patches + first, arena, stream));
    first = end;
  }
  return absl::OkStatus();
}

Status LaunchPatchLabels(const Chain& chain, std::span<const PatchItem> labels, DeviceArena& arena,
                         memory::GpuStream stream) {
  DeviceParameters parameters(arena, stream);
  std::vector<DrawnPatch> drawn(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    SetGeometry(chain, labels[i], true, parameters, drawn[i]);
  }
  const DeviceProgram* const d_patches = AddPrograms(drawn, parameters);
  PB_RETURN_IF_ERROR(parameters.Upload());
  PatchLaunch launch;
  launch.shape = PatchShapeOf(chain);
  for (std::size_t first = 0; first < labels.size(); first += kLaunchSlices) {
    launch.d_patches = d_patches + first;
    launch.count = static_cast<int>(std::min<std::size_t>(kLaunchSlices, labels.size() - first));
    PB_RETURN_IF_ERROR(LaunchOutcome("labels", LaunchLabels(launch, stream)));
    arena.CountKernels(1);
  }
  return absl::OkStatus();
}

}  // namespace patchbay::ops

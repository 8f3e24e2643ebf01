#include "ops/chain/device_volume.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ops/cast/cast.h"
#include "ops/geometry/pixels.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::ops {
namespace {

std::uint64_t Rows(const Extent& patch) { return static_cast<std::uint64_t>(patch.z * patch.y); }

/// Scratch of one patch, in the order in which it lies there.
struct Scratch {
  std::uint64_t smooth = 0;  ///< one of the two blocks in float
  std::uint64_t plane = 0, sums = 0, lines = 0, state = 0;

  /// The second smooth block is done with when the planes are begun.
  std::uint64_t Total() const {
    return smooth + std::max(smooth, 2 * plane + sums + lines + state);
  }
};

Scratch ScratchOf(const Extent& patch, std::uint64_t smoothed_voxels, bool in_planes,
                  std::size_t gammas) {
  Scratch scratch;
  scratch.smooth = AlignedForDevice(smoothed_voxels * sizeof(float));
  if (!in_planes) return scratch;
  scratch.plane = AlignedForDevice(Rows(patch) * static_cast<std::uint64_t>(patch.x) * 4);
  scratch.sums = AlignedForDevice(Rows(patch) * sizeof(PatchSums));
  scratch.lines = AlignedForDevice((gammas + 1) * sizeof(LineWithin));
  scratch.state = AlignedForDevice(sizeof(VolumeState));
  return scratch;
}

Scratch ScratchOf(const Extent& patch, const DrawnVolume& drawn) {
  const auto voxels =
      static_cast<std::uint64_t>(drawn.smooths ? drawn.volume.geometry.source.Voxels() : 0);
  return ScratchOf(patch, voxels, drawn.in_planes, static_cast<std::size_t>(drawn.volume.gammas));
}

void Place(const Scratch& scratch, std::byte* d_at, DrawnVolume& drawn) {
  DeviceVolume& volume = drawn.volume;
  std::byte* d_next = d_at + scratch.smooth;
  if (drawn.smooths) {
    volume.geometry.d_smooth[0] = reinterpret_cast<float*>(d_at);
    volume.geometry.d_smooth[1] = reinterpret_cast<float*>(d_next);
  }
  if (!drawn.in_planes) return;
  const auto take = [&d_next](std::uint64_t bytes) {
    return std::exchange(d_next, d_next + bytes);
  };
  for (float*& d_plane : volume.d_planes) d_plane = reinterpret_cast<float*>(take(scratch.plane));
  volume.d_row_sums = reinterpret_cast<PatchSums*>(take(scratch.sums));
  volume.d_lines = reinterpret_cast<LineWithin*>(take(scratch.lines));
  volume.d_state = reinterpret_cast<VolumeState*>(take(scratch.state));
}

VolumeLaunch LaunchOf(const Chain& chain) {
  VolumeLaunch launch;
  launch.patch = DeviceExtentOf(chain.options().patch);
  launch.source = SourceTypeOf(chain.options().source_dtype);
  launch.to = *CastTarget(chain.options().dtype);
  const auto& casts = chain.volume().casts();
  launch.casts = static_cast<int>(casts.size());
  std::copy(casts.begin(), casts.end(), launch.cast);
  return launch;
}

void Count(const DrawnVolume& drawn, VolumeLaunch& launch) {
  const DeviceVolume& volume = drawn.volume;
  ++launch.count;
  launch.smooths |= drawn.smooths;
  launch.in_planes |= drawn.in_planes;
  launch.blurs |= volume.blur.radius != 0;
  launch.contrasts |= volume.contrast != 1;
  launch.coarse |= drawn.taps != 0;
  launch.gammas = std::max(launch.gammas, volume.gammas);
  if (drawn.smooths) launch.voxels = std::max(launch.voxels, volume.geometry.source.Voxels());
}

/// Ends of the launches: where the next patch finds no place in the scratch, or there are enough.
std::vector<std::size_t> PlaceAll(const Extent& patch, std::span<DrawnVolume> drawn,
                                  DeviceArena& arena) {
  std::vector<std::size_t> ends;
  std::uint64_t used = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Scratch scratch = ScratchOf(patch, drawn[i]);
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
Status FitScratch(const Extent& patch, std::span<const DrawnVolume> drawn, DeviceArena& arena) {
  std::uint64_t largest = 0, all = 0;
  bool smooths = false;
  for (const DrawnVolume& one : drawn) {
    const std::uint64_t bytes = ScratchOf(patch, one).Total();
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

StatusOr<const DeviceVolume*> UploadAll(std::span<const DrawnVolume> drawn, DeviceArena& arena,
                                        memory::GpuStream stream) {
  std::vector<DeviceVolume> volumes;
  for (const DrawnVolume& one : drawn) volumes.push_back(one.volume);
  PB_ASSIGN_OR_RETURN(const std::byte* d_bytes,
                      arena.Upload(std::as_bytes(std::span(volumes)), stream));
  return reinterpret_cast<const DeviceVolume*>(d_bytes);
}

Status Launch(const VolumeLaunch& launch, DeviceArena& arena, memory::GpuStream stream) {
  PB_RETURN_IF_ERROR(LaunchOutcome("ops", LaunchVolumeVoxels(launch, stream)));
  PB_RETURN_IF_ERROR(LaunchOutcome("ops", LaunchVolumeCurves(launch, stream)));
  arena.CountKernels(KernelsOf(launch));
  return absl::OkStatus();
}

}  // namespace

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

int KernelsOf(const VolumeLaunch& launch) {
  const int voxels = (launch.smooths ? 4 : 1) + (launch.blurs ? 3 : 0);
  if (!launch.in_planes) return voxels;
  const int of_gamma = launch.retains ? 5 : 3;
  return voxels + (launch.contrasts ? 2 : 0) + (launch.coarse ? 1 : 0) + launch.gammas * of_gamma +
         1;
}

std::uint64_t VolumePlaneBytes(const Chain& chain, std::size_t patches) {
  constexpr std::uint64_t kSmoothedVoxels = 8;  // of a source, for each of its patch
  const Extent& patch = chain.options().patch;
  const bool in_planes = chain.volume().may_need_planes();
  const std::uint64_t smoothed = chain.options().kind == plan::PatchKind::kResampled
                                     ? kSmoothedVoxels * static_cast<std::uint64_t>(patch.Pixels())
                                     : 0;
  const std::uint64_t unsmoothed = ScratchOf(patch, 0, in_planes, plan::kMaxOps).Total();
  const std::uint64_t one = ScratchOf(patch, smoothed, in_planes, plan::kMaxOps).Total();
  return std::max(unsmoothed,
                  std::min(kPlaneBytesMax, one * std::min<std::size_t>(patches, kLaunchSlices)));
}

Status LaunchVolumePatches(const Chain& chain, std::span<const VolumeItem> patches,
                           DeviceArena& arena, memory::GpuStream stream) {
  const Extent& patch = chain.options().patch;
  DeviceLists lists;
  std::vector<DrawnVolume> drawn;
  for (const VolumeItem& item : patches) drawn.push_back(DrawVolume(chain, item, lists));
  PB_RETURN_IF_ERROR(lists.Upload(arena, stream));
  for (DrawnVolume& one : drawn) Refer(lists, one);
  PB_RETURN_IF_ERROR(FitScratch(patch, drawn, arena));
  const std::vector<std::size_t> ends = PlaceAll(patch, drawn, arena);
  PB_ASSIGN_OR_RETURN(const DeviceVolume* d_volumes, UploadAll(drawn, arena, stream));
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    VolumeLaunch launch = LaunchOf(chain);
    launch.retains = chain.volume().retains_stats();
    launch.d_volumes = d_volumes + first;
    for (; first < end; ++first) Count(drawn[first], launch);
    PB_RETURN_IF_ERROR(Launch(launch, arena, stream));
  }
  return absl::OkStatus();
}

Status LaunchVolumeMasks(const Chain& chain, std::span<const VolumeItem> labels, DeviceArena& arena,
                         memory::GpuStream stream) {
  DeviceLists lists;
  std::vector<DrawnVolume> drawn;
  for (const VolumeItem& item : labels) drawn.push_back(DrawVolumeLabels(chain, item, lists));
  PB_RETURN_IF_ERROR(lists.Upload(arena, stream));
  for (DrawnVolume& one : drawn) Refer(lists, one);
  PB_ASSIGN_OR_RETURN(const DeviceVolume* d_volumes, UploadAll(drawn, arena, stream));
  VolumeLaunch launch = LaunchOf(chain);
  for (std::size_t first = 0; first < labels.size(); first += kLaunchSlices) {
    launch.d_volumes = d_volumes + first;
    launch.count = static_cast<int>(std::min<std::size_t>(kLaunchSlices, labels.size() - first));
    PB_RETURN_IF_ERROR(LaunchOutcome("labels", LaunchVolumeLabels(launch, stream)));
    arena.CountKernels(1);
  }
  return absl::OkStatus();
}

}  // namespace patchbay::ops

#include "ops/chain/device_chain.h"

#include <algorithm>
#include <vector>

#include "ops/cast/cast.h"
#include "ops/chain/device_volume.h"
#include "ops/geometry/pixels.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::ops {
namespace {

static_assert(kMaxKernelSteps >= static_cast<int>(plan::kMaxOps));

std::vector<ValueStep> StepsOf(const ValueSteps& steps) {
  std::vector<ValueStep> made;
  for (const ValueSteps::Step& step : steps.steps()) {
    ValueStep& kernel_step = made.emplace_back();
    if (const auto* to = std::get_if<CastTo>(&step)) {
      kernel_step.casts = true;
      kernel_step.to = *to;
    } else {
      const auto& channels = std::get<std::vector<NormalizeChannel>>(step);
      std::copy(channels.begin(), channels.end(), kernel_step.channel);
    }
  }
  return made;
}

void SetColour(const PatchColour& colour, FloatSlice& slice) {
  slice.maps_lab = colour.lab.has_value();
  if (colour.lab) slice.lab = *colour.lab;
  slice.maps_od = colour.od.has_value();
  if (colour.od) slice.od = *colour.od;
  slice.jitters = colour.jitter.has_value();
  if (colour.jitter) slice.jitter = *colour.jitter;
  slice.before_mean = colour.StepsBeforeMean();
  slice.blur_radius = colour.blur.radius;
  std::copy(colour.blur.weight.begin(), colour.blur.weight.end(), slice.blur_weight);
  slice.noise = colour.noise;
}

template <typename Slice>
std::span<const std::byte> BytesOf(const std::vector<Slice>& slices) {
  return std::as_bytes(std::span(slices));
}

}  // namespace

StatusOr<DeviceChain> DeviceChain::Create(const Chain& chain, memory::GpuStream stream) {
  DeviceChain device;
  device.chain_ = std::make_unique<const Chain>(chain);
  const std::vector<ValueStep> steps = StepsOf(chain.value_steps());
  const auto bytes = chain.table().empty() ? BytesOf(steps) : std::as_bytes(device.chain_->table());
  PB_ASSIGN_OR_RETURN(device.program_,
                      memory::DeviceBlock::Allocate(std::max<std::size_t>(bytes.size(), 1)));
  if (bytes.empty()) return device;
  // Copies from memory that is not pinned are staged during the call.
  PB_RETURN_IF_ERROR(memory::CopyToDevice(device.program_.d_data(), bytes, stream));
  return device;
}

Status DeviceChain::Begin(DeviceArena& arena, std::size_t patches) const {
  if (chain_->is_volume()) {
    // Images and labels, each in two uploads.
    const std::size_t parameters =
        2 * (patches * VolumeParameterBytes(*chain_) + 2 * kDeviceAlignment);
    return arena.Begin(parameters, VolumePlaneBytes(*chain_, patches));
  }
  const auto depth = static_cast<std::size_t>(chain_->options().patch.z);
  const std::size_t slice_bytes = chain_->in_float() ? sizeof(FloatSlice) : sizeof(MovedSlice);
  const std::size_t images =
      AlignedForDevice(patches * depth * slice_bytes) + patches * kDeviceAlignment;
  const std::size_t labels =
      AlignedForDevice(patches * sizeof(FloatSlice)) + patches * kDeviceAlignment;
  const bool needs_planes = chain_->in_float() && chain_->colour().needs_planes();
  const int planes = needs_planes ? PlanesAtOnce() : 0;
  return arena.Begin(images + labels, static_cast<std::uint64_t>(planes) * PlaneBytes());
}

Status DeviceChain::Check(const DevicePatch& patch) const {
  const auto misaligned = [](const std::byte* at, DType dtype) {
    return reinterpret_cast<std::uintptr_t>(at) % SizeOf(dtype) != 0;
  };
  const ChainOptions& options = chain_->options();
  if (patch.d_source == nullptr || patch.d_out == nullptr ||
      misaligned(patch.d_out, options.dtype) || misaligned(patch.d_source, options.source_dtype)) {
    return absl::InvalidArgumentError("launch ops: a patch has no memory, or is misaligned");
  }
  return chain_->CheckFit(patch.colours);
}

SliceShape DeviceChain::Shape() const {
  const ChainOptions& options = chain_->options();
  SliceShape shape;
  shape.height = options.patch.y;
  shape.width = options.patch.x;
  shape.source_height = chain_->source_extent().y;
  shape.source_width = chain_->source_extent().x;
  shape.channel_elements = options.patch.Pixels();
  shape.channels = options.channels;
  shape.planar = options.layout == OutputLayout::kNchw;
  shape.to = *CastTarget(options.dtype);
  shape.source = SourceTypeOf(options.source_dtype);
  return shape;
}

std::uint64_t DeviceChain::SliceSourceBytes() const {
  const SliceShape shape = Shape();
  return static_cast<std::uint64_t>(shape.source_height * shape.source_width * shape.channels) *
         SizeOf(chain_->options().source_dtype);
}

std::uint64_t DeviceChain::SliceBytes() const {
  const SliceShape shape = Shape();
  return static_cast<std::uint64_t>(shape.height * shape.width *
                                    (shape.planar ? 1 : shape.channels)) *
         SizeOf(chain_->options().dtype);
}

std::uint64_t DeviceChain::PlaneBytes() const {
  const SliceShape shape = Shape();
  return AlignedForDevice(
      static_cast<std::size_t>(2 * shape.channels * shape.height * shape.width) * sizeof(float));
}

int DeviceChain::PlanesAtOnce() const {
  const std::uint64_t fit = kPlaneBytesMax / PlaneBytes();
  return static_cast<int>(std::clamp<std::uint64_t>(fit, 1, kLaunchSlices));
}

Status DeviceChain::Launch(std::span<const DevicePatch> patches, DeviceArena& arena,
                           memory::GpuStream stream) const {
  for (const DevicePatch& patch : patches) PB_RETURN_IF_ERROR(Check(patch));
  if (patches.empty()) return absl::OkStatus();
  if (chain_->is_volume()) {
    std::vector<VolumeItem> items;
    for (const DevicePatch& patch : patches) {
      items.push_back({patch.d_source, patch.d_out, patch.key, patch.facts});
    }
    return LaunchVolumePatches(*chain_, items, arena, stream);
  }
  return chain_->in_float() ? LaunchInFloat(patches, arena, stream)
                            : LaunchMoved(patches, arena, stream);
}

Status DeviceChain::LaunchMoved(std::span<const DevicePatch> patches, DeviceArena& arena,
                                memory::GpuStream stream) const {
  std::vector<MovedSlice> slices;
  for (const DevicePatch& patch : patches) {
    const WindowMap window = chain_->DrawWindow(patch.key);
    for (std::int64_t z = 0; z < chain_->options().patch.z; ++z) {
      slices.push_back({patch.d_source + static_cast<std::uint64_t>(z) * SliceSourceBytes(),
                        patch.d_out + static_cast<std::uint64_t>(z) * SliceBytes(), window});
    }
  }
  PB_ASSIGN_OR_RETURN(std::byte * d_bytes, arena.Upload(BytesOf(slices), stream));
  const auto* d_slices = reinterpret_cast<const MovedSlice*>(d_bytes);
  const bool by_table = !chain_->table().empty();
  for (std::size_t first = 0; first < slices.size(); first += kLaunchSlices) {
    const int count = static_cast<int>(std::min<std::size_t>(kLaunchSlices, slices.size() - first));
    int error = 0;
    if (by_table) {
      const auto* d_table = reinterpret_cast<const std::uint32_t*>(program_.d_data());
      error = LaunchTables({Shape(), d_slices + first, count, d_table}, stream);
    } else {
      const auto* d_steps = reinterpret_cast<const ValueStep*>(program_.d_data());
      const int steps = static_cast<int>(chain_->value_steps().steps().size());
      error = LaunchValues({Shape(), d_slices + first, count, d_steps, steps}, stream);
    }
    PB_RETURN_IF_ERROR(LaunchOutcome("ops", error));
    arena.CountKernels(1);
  }
  return absl::OkStatus();
}

Status DeviceChain::AddSlices(const DevicePatch& patch, DeviceArena& arena,
                              memory::GpuStream stream, std::vector<FloatSlice>& slices) const {
  FloatSlice slice;
  slice.geometry = chain_->DrawGeometry(patch.key);
  const PatchColour colour = chain_->DrawColour(patch.key, patch.colours);
  SetColour(colour, slice);
  if (colour.icc != nullptr) {
    PB_ASSIGN_OR_RETURN(slice.d_icc, arena.Upload(*colour.icc, stream));
  }
  for (std::int64_t z = 0; z < chain_->options().patch.z; ++z) {
    slice.d_source = patch.d_source + static_cast<std::uint64_t>(z) * SliceSourceBytes();
    slice.d_out = patch.d_out + static_cast<std::uint64_t>(z) * SliceBytes();
    slice.rows_before = z * chain_->options().patch.y;
    slices.push_back(slice);
  }
  return absl::OkStatus();
}

FloatLaunch DeviceChain::Program() const {
  const ColourProgram& colour = chain_->colour();
  FloatLaunch launch;
  launch.shape = Shape();
  launch.white = static_cast<float>(colour.white());
  launch.icc_grid = kIccGrid;
  launch.scales = !colour.slopes().empty();
  std::copy(colour.slopes().begin(), colour.slopes().end(), launch.slope);
  std::copy(colour.offsets().begin(), colour.offsets().end(), launch.offset);
  launch.casts = static_cast<int>(colour.casts().size());
  std::copy(colour.casts().begin(), colour.casts().end(), launch.cast);
  return launch;
}

Status DeviceChain::LaunchInFloat(std::span<const DevicePatch> patches, DeviceArena& arena,
                                  memory::GpuStream stream) const {
  std::vector<FloatSlice> slices;
  for (const DevicePatch& patch : patches) {
    PB_RETURN_IF_ERROR(AddSlices(patch, arena, stream, slices));
  }
  // A launch ends where its slices or its scratch do; the next one uses the scratch after it.
  std::vector<std::size_t> ends;
  const int planes_max = PlanesAtOnce();
  int planes = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const bool needs_planes = slices[i].needs_mean() || slices[i].blur_radius != 0;
    if (i - first == kLaunchSlices || (needs_planes && planes == planes_max)) {
      ends.push_back(i);
      first = i;
      planes = 0;
    }
    if (!needs_planes) continue;
    slices[i].d_planes = reinterpret_cast<float*>(
        arena.d_planes() + static_cast<std::uint64_t>(planes++) * PlaneBytes());
  }
  ends.push_back(slices.size());
  PB_ASSIGN_OR_RETURN(std::byte * d_bytes, arena.Upload(BytesOf(slices), stream));
  FloatLaunch launch = Program();
  first = 0;
  for (const std::size_t end : ends) {
    launch.d_slices = reinterpret_cast<FloatSlice*>(d_bytes) + first;
    launch.count = static_cast<int>(end - first);
    launch.any_mean = launch.any_blur = false;
    for (; first < end; ++first) {
      launch.any_mean = launch.any_mean || slices[first].needs_mean();
      launch.any_blur = launch.any_blur || slices[first].blur_radius != 0;
    }
    PB_RETURN_IF_ERROR(LaunchOutcome("ops", LaunchFloat(launch, stream)));
    arena.CountKernels(1 + (launch.any_mean ? 1 : 0) + (launch.any_blur ? 2 : 0));
  }
  return absl::OkStatus();
}

Status DeviceChain::LaunchLabels(std::span<const DeviceLabels> labels, DeviceArena& arena,
                                 memory::GpuStream stream) const {
  if (chain_->options().patch.z != 1 && !chain_->is_volume()) {
    return absl::InvalidArgumentError("launch labels: for 2-D patches and chains of volumes only");
  }
  for (const DeviceLabels& label : labels) {
    if (label.d_source == nullptr || label.d_out == nullptr) {
      return absl::InvalidArgumentError("launch labels: a patch has no memory");
    }
  }
  if (labels.empty()) return absl::OkStatus();
  if (chain_->is_volume()) {
    std::vector<VolumeItem> items;
    for (const DeviceLabels& label : labels) {
      items.push_back({label.d_source, label.d_out, label.key, label.facts});
    }
    return LaunchVolumeMasks(*chain_, items, arena, stream);
  }
  std::vector<FloatSlice> slices(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    slices[i].d_source = labels[i].d_source;
    slices[i].d_out = labels[i].d_out;
    slices[i].geometry = chain_->DrawGeometry(labels[i].key);
  }
  PB_ASSIGN_OR_RETURN(std::byte * d_bytes, arena.Upload(BytesOf(slices), stream));
  LabelLaunch launch;
  launch.shape = Shape();
  for (std::size_t first = 0; first < slices.size(); first += kLaunchSlices) {
    launch.d_slices = reinterpret_cast<const FloatSlice*>(d_bytes) + first;
    launch.count = static_cast<int>(std::min<std::size_t>(kLaunchSlices, slices.size() - first));
    PB_RETURN_IF_ERROR(LaunchOutcome("labels", ops::LaunchLabels(launch, stream)));
    arena.CountKernels(1);
  }
  return absl::OkStatus();
}

}  // namespace patchbay::ops

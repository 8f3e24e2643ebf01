#include "ops/chain/device_chain.h"

#include <algorithm>
#include <vector>

#include "ops/chain/device_patches.h"
#include "ops/geometry/pixels.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

SliceShape SliceShapeOf(const Chain& chain) {
  const ChainOptions& options = chain.options();
  SliceShape shape;
  shape.height = options.patch.y;
  shape.width = options.patch.x;
  shape.source_height = chain.source_extent().y;
  shape.source_width = chain.source_extent().x;
  shape.channel_elements = options.patch.Pixels();
  shape.channels = options.channels;
  shape.planar = options.layout == PatchLayout::kNchw;
  shape.to = *CastTarget(options.dtype);
  return shape;
}

}  // namespace

StatusOr<DeviceChain> DeviceChain::Create(const Chain& chain, memory::GpuStream stream) {
  DeviceChain device;
  device.chain_ = std::make_unique<const Chain>(chain);
  const auto bytes = std::as_bytes(device.chain_->table());
  PB_ASSIGN_OR_RETURN(device.table_,
                      memory::DeviceBlock::Allocate(std::max<std::size_t>(bytes.size(), 1)));
  if (bytes.empty()) return device;
  // Copies from memory that is not pinned are staged during the call.
  PB_RETURN_IF_ERROR(memory::CopyToDevice(device.table_.d_data(), bytes, stream));
  return device;
}

Status DeviceChain::Begin(DeviceArena& arena, std::size_t patches) const {
  const auto depth = static_cast<std::size_t>(chain_->options().patch.z);
  const std::size_t moved =
      chain_->table().empty() ? 0 : AlignedForDevice(patches * depth * sizeof(MovedSlice));
  // Images and labels, an upload each.
  const std::size_t uploads =
      2 * AlignedForDevice(patches * ParameterBytes(*chain_) + SharedParameterBytes(*chain_));
  return arena.Begin(moved + uploads, ScratchBytes(*chain_, patches));
}

Status DeviceChain::Check(const DevicePatch& patch) const {
  const auto misaligned = [](const std::byte* at, DType dtype) {
    return reinterpret_cast<std::uintptr_t>(at) % SizeOf(dtype) != 0;
  };
  const ChainOptions& options = chain_->options();
  if (patch.d_source == nullptr || patch.d_out == nullptr ||
      misaligned(patch.d_out, options.dtype) || misaligned(patch.d_source, options.source_dtype)) {
    return InvalidArgument("launch ops: a patch has no memory, or is misaligned");
  }
  return chain_->CheckFit(patch.colours);
}

Status DeviceChain::Launch(std::span<const DevicePatch> patches, DeviceArena& arena,
                           memory::GpuStream stream) const {
  for (const DevicePatch& patch : patches) PB_RETURN_IF_ERROR(Check(patch));
  if (patches.empty()) return absl::OkStatus();
  if (!chain_->table().empty()) return LaunchMoved(patches, arena, stream);
  std::vector<PatchItem> items;
  for (const DevicePatch& patch : patches) {
    items.push_back({patch.d_source, patch.d_out, {patch.key, patch.colours, patch.facts}});
  }
  return LaunchPatches(*chain_, items, arena, stream);
}

Status DeviceChain::LaunchMoved(std::span<const DevicePatch> patches, DeviceArena& arena,
                                memory::GpuStream stream) const {
  const SliceShape shape = SliceShapeOf(*chain_);
  const std::int64_t source_bytes = shape.source_height * shape.source_width * shape.channels;
  const std::int64_t slice_bytes = shape.height * shape.width *
                                   (shape.planar ? 1 : shape.channels) *
                                   static_cast<std::int64_t>(SizeOf(chain_->options().dtype));
  std::vector<MovedSlice> slices;
  for (const DevicePatch& patch : patches) {
    const WindowMap window = chain_->DrawWindow(patch.key);
    for (std::int64_t z = 0; z < chain_->options().patch.z; ++z) {
      slices.push_back({patch.d_source + z * source_bytes, patch.d_out + z * slice_bytes, window});
    }
  }
  PB_ASSIGN_OR_RETURN(std::byte * d_bytes, arena.Upload(std::as_bytes(std::span(slices)), stream));
  const auto* d_slices = reinterpret_cast<const MovedSlice*>(d_bytes);
  const auto* d_table = reinterpret_cast<const std::uint32_t*>(table_.d_data());
  for (std::size_t first = 0; first < slices.size(); first += kLaunchSlices) {
    const int count = static_cast<int>(std::min<std::size_t>(kLaunchSlices, slices.size() - first));
    PB_RETURN_IF_ERROR(
        LaunchOutcome("ops", LaunchTables({shape, d_slices + first, count, d_table}, stream)));
    arena.CountKernels(1);
  }
  return absl::OkStatus();
}

Status DeviceChain::LaunchLabels(std::span<const DeviceLabels> labels, DeviceArena& arena,
                                 memory::GpuStream stream) const {
  if (chain_->options().patch.z != 1 && !chain_->is_volume()) {
    return InvalidArgument("launch labels: for 2-D patches and chains of volumes only");
  }
  std::vector<PatchItem> items;
  for (const DeviceLabels& label : labels) {
    if (label.d_source == nullptr || label.d_out == nullptr) {
      return InvalidArgument("launch labels: a patch has no memory");
    }
    items.push_back({label.d_source, label.d_out, {label.key, {}, label.facts}});
  }
  return items.empty() ? absl::OkStatus() : LaunchPatchLabels(*chain_, items, arena, stream);
}

}  // namespace patchbay::ops

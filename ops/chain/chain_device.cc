#include <algorithm>

#include "ops/chain/chain.h"
#include "ops/chain/chain_kernel.h"
#include "ops/geometry/pixels.h"
#include "runtime/base/strings.h"

namespace patchbay::ops {
StatusOr<DeviceChain> DeviceChain::Create(const Chain& chain, memory::GpuStream stream) {
  if (chain.table().empty() || chain.options().patch.z != 1) {
    return absl::UnimplementedError(
        "upload ops: only flat patches of uint8 images, by ops that are tables, are made on a GPU");
  }
  DeviceChain device;
  device.chain_ = std::make_unique<const Chain>(chain);
  const auto bytes = std::as_bytes(device.chain_->table());
  PB_ASSIGN_OR_RETURN(device.table_, memory::DeviceBlock::Allocate(bytes.size()));
  PB_RETURN_IF_ERROR(memory::CopyToDevice(device.table_.d_data(), bytes, stream));
  return device;
}

Status DeviceChain::Launch(std::span<const DevicePatch> patches, memory::GpuStream stream) const {
  const ChainOptions& options = chain_->options();
  ChainKernelBatch batch;
  batch.channels = options.channels;
  batch.element_bytes = static_cast<int>(SizeOf(options.dtype));
  batch.planar = options.layout == OutputLayout::kNchw;
  batch.source_width = chain_->source_extent().x;
  batch.d_table = reinterpret_cast<const std::uint32_t*>(table_.d_data());
  for (const DevicePatch& patch : patches) {
    const auto misaligned = reinterpret_cast<std::uintptr_t>(patch.d_out) % SizeOf(options.dtype);
    if (patch.d_source == nullptr || patch.d_out == nullptr || misaligned != 0) {
      return absl::InvalidArgumentError("launch ops: a patch has no memory, or is misaligned");
    }
  }
  for (std::size_t first = 0; first < patches.size(); first += kLaunchPatches) {
    const auto part =
        patches.subspan(first, std::min<std::size_t>(kLaunchPatches, patches.size() - first));
    batch.count = static_cast<int>(part.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      batch.patch[i] = {part[i].d_source, part[i].d_out, chain_->DrawWindow(part[i].key)};
    }
    PB_RETURN_IF_ERROR(LaunchOutcome("ops", LaunchChainKernel(batch, stream)));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::ops

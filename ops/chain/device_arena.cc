#include "ops/chain/device_arena.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/strings.h"

namespace patchbay::ops {

Status DeviceArena::Begin(std::size_t parameter_bytes, std::uint64_t plane_bytes) {
  used_ = 0;
  outgrown_.clear();
  if (kept_.size() > kKeptBlocks) kept_.resize(kKeptBlocks);
  if (h_parameters_.bytes().size() < parameter_bytes) {
    PB_ASSIGN_OR_RETURN(auto h_parameters, memory::PinnedBuffer::Allocate(parameter_bytes));
    PB_ASSIGN_OR_RETURN(d_parameters_, memory::DeviceBlock::Allocate(parameter_bytes));
    h_parameters_ = std::move(h_parameters);  // its size says that both are there
  }
  return FitPlanes(plane_bytes);
}

Status DeviceArena::FitPlanes(std::uint64_t plane_bytes) {
  if (d_planes_.size_bytes() >= plane_bytes) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(auto d_planes, memory::DeviceBlock::Allocate(plane_bytes));
  outgrown_.push_back(std::exchange(d_planes_, std::move(d_planes)));
  return absl::OkStatus();
}

StatusOr<std::byte*> DeviceArena::Upload(std::span<const std::byte> parameters,
                                         memory::GpuStream stream) {
  if (used_ + parameters.size() > h_parameters_.bytes().size()) {
    return Internal("launch ops: ", parameters.size(),
                    " bytes of parameters: more than Begin was told");
  }
  const std::span<std::byte> h_part = h_parameters_.bytes().subspan(used_, parameters.size());
  std::byte* const d_part = d_parameters_.d_data() + used_;
  used_ += AlignedForDevice(parameters.size());
  std::memcpy(h_part.data(), parameters.data(), parameters.size());
  PB_RETURN_IF_ERROR(memory::CopyToDevice(d_part, h_part, stream));
  return d_part;
}

StatusOr<const std::byte*> DeviceArena::Keep(const Digest& digest,
                                             std::span<const std::byte> values,
                                             memory::GpuStream stream) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&digest](const auto& kept) { return kept.first == digest; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    PB_ASSIGN_OR_RETURN(auto d_values, memory::DeviceBlock::Allocate(values.size()));
    // Copies from memory that is not pinned are staged during the call.
    PB_RETURN_IF_ERROR(memory::CopyToDevice(d_values.d_data(), values, stream));
    kept_.emplace_front(digest, std::move(d_values));
  }
  return kept_.front().second.d_data();
}

}  // namespace patchbay::ops

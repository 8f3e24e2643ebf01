#include "workers/stream/gpu_lane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "workers/stream/chain_options.h"
#include "workers/stream/patch_arrays.h"

namespace patchbay::workers {
namespace {

/// Parts of a lane are aligned as whole blocks are.
std::size_t RoundUp(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

Status FitPinned(memory::PinnedBuffer& buffer, std::size_t bytes) {
  if (buffer.bytes().size() >= bytes) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(buffer, memory::PinnedBuffer::Allocate(bytes));
  return absl::OkStatus();
}

Status FitDevice(memory::DeviceBlock& block, std::size_t bytes) {
  if (block.size_bytes() >= bytes) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(block, memory::DeviceBlock::Allocate(bytes));
  return absl::OkStatus();
}

/// Bytes of the arrays of a patch that LabelArrays makes.
std::size_t LabelBytes(const BatchLayout& layout) {
  std::size_t bytes = 0;
  for (const ArrayLayout& array : layout.arrays) {
    if (array.name == "mask" || array.name == "label") bytes += array.PatchBytes();
  }
  return bytes;
}

}  // namespace

Status GpuLane::Open() {
  PB_ASSIGN_OR_RETURN(stream_, memory::OwnedGpuStream::Create());
  PB_ASSIGN_OR_RETURN(made_, memory::GpuEvent::Create());
  return absl::OkStatus();
}

Status GpuLane::Begin(const StreamContext& context) {
  PB_CHECK(patches_.empty());
  views_ = context.plan().views();
  tile_bytes_ = TileDecoder::TileBytes(context);
  tile_stride_ = RoundUp(tile_bytes_);
  patch_stride_ = RoundUp(context.chain().patch_bytes());
  label_stride_ = RoundUp(LabelBytes(context.layout()));
  capacity_ = std::clamp<std::size_t>(
      kLaneBytesMax / (std::max(tile_stride_, patch_stride_) * views_), 1, kLanePatchesMax);
  tiles_ = 0;
  first_tile_.clear();
  lookups_.clear();
  PB_RETURN_IF_ERROR(FitPinned(h_tiles_, capacity_ * views_ * tile_stride_));
  PB_RETURN_IF_ERROR(FitDevice(d_tiles_, capacity_ * views_ * tile_stride_));
  return FitPinned(h_labels_, capacity_ * label_stride_);
}

Status GpuLane::Stage(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels) {
  PB_CHECK(patches_.size() < capacity_);
  WriteMetaArrays(patch);
  lookups_.resize(patches_.size() + 1);
  if (!patch.spec.pad) {
    PB_ASSIGN_OR_RETURN(lookups_.back(), patch.job->context().ToSrgb(patch.spec.image));
  }
  PB_RETURN_IF_ERROR(StageLabels(patch, decoder, labels));
  for (std::size_t view = 0; view < views_; ++view) {
    if (!patch.spec.pad) {
      const std::size_t at = (tiles_ + view) * tile_stride_;
      PB_RETURN_IF_ERROR(decoder.Decode(patch, view, h_tiles_.bytes().subspan(at, tile_bytes_)));
    } else if (DevicePlaceOf(patch, kImageArray + view) == nullptr) {
      const std::span<std::byte> place = HostPlaceOf(patch, kImageArray + view);
      std::memset(place.data(), 0, place.size());
    }
  }
  return absl::OkStatus();
}

/// Masks and labels are made on the CPU; those of arrays on the device wait in the lane.
Status GpuLane::StageLabels(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels) {
  if (label_stride_ == 0) return absl::OkStatus();
  PB_RETURN_IF_ERROR(WriteLabelArrays(patch, decoder, labels));
  std::span<std::byte> room =
      h_labels_.bytes().subspan(patches_.size() * label_stride_, label_stride_);
  for (const ArrayLayout& array : patch.job->context().layout().arrays) {
    const auto bytes = labels.BytesOf(array);
    if (!bytes) continue;
    std::memcpy(room.data(), bytes->data(), bytes->size());
    room = room.subspan(bytes->size());
  }
  return absl::OkStatus();
}

void GpuLane::Charge(std::int64_t ns) const {
  const auto patches = static_cast<std::int64_t>(patches_.size());
  for (const auto& patch : patches_) patch->job->spent.transform_ns += ns / patches;
}

void GpuLane::Add(std::unique_ptr<FetchedPatch> patch) {
  first_tile_.push_back(tiles_);
  if (!patch->spec.pad) tiles_ += views_;
  patches_.push_back(std::move(patch));
}

Status GpuLane::AddImages(std::size_t index, std::vector<ops::DevicePatch>& launch) {
  const FetchedPatch& patch = *patches_[index];
  const std::size_t tile = first_tile_[index];
  const plan::Plan& plan = patch.job->context().plan();
  const std::uint64_t patch_bytes = patch.job->context().chain().patch_bytes();
  for (std::size_t view = 0; view < views_; ++view) {
    std::byte* d_out = DevicePlaceOf(patch, kImageArray + view);
    if (patch.spec.pad) {
      if (d_out == nullptr) continue;
      PB_RETURN_IF_ERROR(memory::FillDevice(d_out, 0, patch_bytes, stream_.get()));
      continue;
    }
    if (d_out == nullptr) {
      PB_RETURN_IF_ERROR(FitDevice(d_patches_, capacity_ * views_ * patch_stride_));
      d_out = d_patches_.d_data() + (tile + view) * patch_stride_;
    }
    launch.push_back({d_tiles_.d_data() + (tile + view) * tile_stride_, d_out, patch.spec.key,
                      ColoursOf(plan.images()[patch.spec.image], lookups_[index].get())});
  }
  return absl::OkStatus();
}

Status GpuLane::QueueLabels(const FetchedPatch& patch, std::size_t index) {
  const std::vector<ArrayLayout>& arrays = patch.job->context().layout().arrays;
  std::size_t at = index * label_stride_;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].name != "mask" && arrays[i].name != "label") continue;
    const auto h_part = h_labels_.bytes().subspan(at, arrays[i].PatchBytes());
    at += h_part.size();
    std::byte* const d_out = DevicePlaceOf(patch, i);
    if (d_out == nullptr) continue;
    PB_RETURN_IF_ERROR(memory::CopyToDevice(d_out, h_part, stream_.get()));
  }
  return absl::OkStatus();
}

Status GpuLane::QueueToHost(const FetchedPatch& patch, std::size_t tile) {
  if (patch.spec.pad) return absl::OkStatus();
  for (std::size_t view = 0; view < views_; ++view) {
    if (DevicePlaceOf(patch, kImageArray + view) != nullptr) continue;
    const std::byte* d_patch = d_patches_.d_data() + (tile + view) * patch_stride_;
    PB_RETURN_IF_ERROR(
        memory::CopyToHost(HostPlaceOf(patch, kImageArray + view), d_patch, stream_.get()));
  }
  return absl::OkStatus();
}

Status GpuLane::Launch(const ops::DeviceChain& chain) {
  if (patches_.empty()) return absl::OkStatus();
  if (tiles_ != 0) {
    PB_RETURN_IF_ERROR(memory::CopyToDevice(
        d_tiles_.d_data(), h_tiles_.bytes().first(tiles_ * tile_stride_), stream_.get()));
  }
  std::vector<ops::DevicePatch> launch;
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    if (!patches_[i]->job->Wanted()) continue;
    PB_RETURN_IF_ERROR(AddImages(i, launch));
    if (label_stride_ != 0) PB_RETURN_IF_ERROR(QueueLabels(*patches_[i], i));
  }
  PB_RETURN_IF_ERROR(chain.Begin(room_, capacity_ * views_));
  PB_RETURN_IF_ERROR(chain.Launch(launch, room_, stream_.get()));
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    if (!patches_[i]->job->Wanted()) continue;
    PB_RETURN_IF_ERROR(QueueToHost(*patches_[i], first_tile_[i]));
  }
  return made_.Record(stream_.get());
}

Status GpuLane::WaitSync() const { return made_.WaitSync(); }

Status GpuLane::WaitForAllSync() const { return stream_.WaitSync(); }

std::vector<std::unique_ptr<FetchedPatch>> GpuLane::Take() { return std::exchange(patches_, {}); }

}  // namespace patchbay::workers

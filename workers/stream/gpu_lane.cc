#include "workers/stream/gpu_lane.h"

#include <algorithm>
#include <bit>
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
  buffer = memory::PinnedBuffer();
  PB_ASSIGN_OR_RETURN(buffer, memory::PinnedBuffer::Allocate(bytes));
  return absl::OkStatus();
}

Status FitDevice(memory::DeviceBlock& block, std::size_t bytes) {
  if (block.size_bytes() >= bytes) return absl::OkStatus();
  block = memory::DeviceBlock();
  PB_ASSIGN_OR_RETURN(block, memory::DeviceBlock::Allocate(bytes));
  return absl::OkStatus();
}

/// Bytes of the arrays of a patch that LabelArrays makes.
std::size_t LabelBytes(const BatchLayout& layout) {
  std::size_t bytes = 0;
  for (const ArrayLayout& array : layout.arrays) {
    if (IsMadeOfLabels(array)) bytes += array.PatchBytes();
  }
  return bytes;
}

}  // namespace

Status GpuLane::Open(std::size_t bytes_max) {
  bytes_max_ = bytes_max;
  PB_ASSIGN_OR_RETURN(stream_, memory::OwnedGpuStream::Create());
  PB_ASSIGN_OR_RETURN(begun_, memory::GpuEvent::CreateTimed());
  PB_ASSIGN_OR_RETURN(made_, memory::GpuEvent::CreateTimed());
  return absl::OkStatus();
}

StatusOr<std::size_t> GpuLane::Begin(std::span<const std::unique_ptr<FetchedPatch>> patches) {
  PB_CHECK(patches_.empty() && !patches.empty());
  const StreamContext& context = patches.front()->work->context();
  views_ = context.plan().views();
  patch_stride_ = RoundUp(context.chain().patch_bytes());
  label_stride_ = RoundUp(LabelBytes(context.layout()));
  capacity_ = std::clamp<std::size_t>(bytes_max_ / (patch_stride_ * views_), 1, kLanePatchesMax);
  tile_bytes_ = images_ = 0;
  const Fitting fitting = FirstThatFit(patches);
  PB_RETURN_IF_ERROR(FitTiles(*patches.front(), fitting));
  PB_RETURN_IF_ERROR(FitPinned(h_labels_, capacity_ * label_stride_));
  return fitting.count;
}

GpuLane::Tile GpuLane::TileOf(const FetchedPatch& patch) {
  if (patch.spec.pad) return {};
  const std::size_t bytes = TileDecoder::TileBytes(patch.work->context(), patch.spec);
  return {bytes, RoundUp(bytes)};
}

GpuLane::Fitting GpuLane::FirstThatFit(
    std::span<const std::unique_ptr<FetchedPatch>> patches) const {
  Fitting fitting;
  for (const auto& patch : patches) {
    const std::size_t more = TileOf(*patch).stride * views_;
    const bool is_full = fitting.count == capacity_ || fitting.tile_bytes + more > bytes_max_;
    if (fitting.count != 0 && is_full) break;
    fitting.tile_bytes += more;
    fitting.largest = std::max(fitting.largest, more);
    ++fitting.count;
  }
  return fitting;
}

/// Makes room for those tiles, with a reserve for later patches. Source boxes of volumes differ:
/// their room is that of a lane full of patches twice as large, and is doubled when one box is
/// larger than a lane.
Status GpuLane::FitTiles(const FetchedPatch& first, const Fitting& fitting) {
  const StreamContext& context = first.work->context();
  const bool is_volume = context.chain().is_volume();
  const std::size_t patch_bytes =
      is_volume ? 2 * fitting.largest : views_ * RoundUp(TileDecoder::TileBytes(context));
  const std::size_t room =
      std::max(std::min(bytes_max_, capacity_ * patch_bytes),
               is_volume ? std::bit_ceil(fitting.tile_bytes) : fitting.tile_bytes);
  Status fits = FitPinned(h_tiles_, room);
  if (fits.ok()) fits = FitDevice(d_tiles_, room);
  const std::string extent = TileDecoder::TileExtent(context, first.spec).ToString();
  return About(Annotate(fits, StrCat("read ", extent, " pixels for a patch")), "",
               {SubjectKind::kImage, first.spec.image, ""});
}

Status GpuLane::Stage(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels) {
  PB_CHECK(patches_.size() < capacity_);
  WriteMetaArrays(patch);
  lookup_ = nullptr;
  if (!patch.spec.pad) {
    PB_ASSIGN_OR_RETURN(lookup_, patch.work->context().ToSrgb(patch.spec.image));
  }
  PB_RETURN_IF_ERROR(StageLabels(patch, decoder, labels));
  const Tile tile = TileOf(patch);
  for (std::size_t view = 0; view < views_; ++view) {
    if (!patch.spec.pad) {
      const std::size_t at = tile_bytes_ + view * tile.stride;
      PB_RETURN_IF_ERROR(decoder.Decode(patch, view, h_tiles_.bytes().subspan(at, tile.bytes)));
    } else if (DevicePlaceOf(patch, kImageArray + view) == nullptr) {
      const std::span<std::byte> place = HostPlaceOf(patch, kImageArray + view);
      std::memset(place.data(), 0, place.size());
    }
  }
  return absl::OkStatus();
}

/// Masks and labels are made on the CPU; those for arrays on the device are kept in the lane until
/// they are copied.
Status GpuLane::StageLabels(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels) {
  if (label_stride_ == 0) return absl::OkStatus();
  PB_RETURN_IF_ERROR(WriteLabelArrays(patch, decoder, labels));
  std::span<std::byte> room =
      h_labels_.bytes().subspan(patches_.size() * label_stride_, label_stride_);
  for (const ArrayLayout& array : patch.work->context().layout().arrays) {
    const auto bytes = labels.BytesOf(array);
    if (!bytes) continue;
    std::memcpy(room.data(), bytes->data(), bytes->size());
    room = room.subspan(bytes->size());
  }
  return absl::OkStatus();
}

void GpuLane::Charge(std::int64_t ns) const {
  if (patches_.empty()) return;
  const auto patches = static_cast<std::uint32_t>(patches_.size());
  const ThreadSpent spent = TakeSpent();
  for (const Staged& staged : patches_) {
    StageClock& of = staged.patch->work->spent;
    of.transform_ns += ns / patches;
    of.Charge(spent, patches);
  }
}

void GpuLane::ChargeGpu(memory::GpuEvent& last) {
  const auto busy = made_.NsSince(begun_), after = made_.NsSince(last);
  if (busy.ok()) {
    const std::int64_t ns = std::max<std::int64_t>(std::min(*busy, after.value_or(*busy)), 0);
    const auto patches = static_cast<std::int64_t>(patches_.size());
    for (const Staged& staged : patches_) staged.patch->work->spent.gpu_ns += ns / patches;
  }
  std::swap(made_, last);
}

void GpuLane::Add(std::unique_ptr<FetchedPatch> patch) {
  const std::size_t begin = tile_bytes_, images = images_;
  if (!patch->spec.pad) {
    tile_bytes_ += views_ * TileOf(*patch).stride;
    images_ += views_;
  }
  patches_.push_back({std::move(patch), begin, images, std::move(lookup_)});
}

Status GpuLane::AddImages(const Staged& staged, std::vector<ops::DevicePatch>& launch) {
  const FetchedPatch& patch = *staged.patch;
  const plan::Plan& plan = patch.work->context().plan();
  const std::uint64_t patch_bytes = patch.work->context().chain().patch_bytes();
  const std::size_t stride = TileOf(patch).stride;
  for (std::size_t view = 0; view < views_; ++view) {
    std::byte* d_out = DevicePlaceOf(patch, kImageArray + view);
    if (patch.spec.pad) {
      if (d_out == nullptr) continue;
      PB_RETURN_IF_ERROR(memory::FillDevice(d_out, 0, patch_bytes, stream_.get()));
      continue;
    }
    if (d_out == nullptr) {
      PB_RETURN_IF_ERROR(FitDevice(d_patches_, capacity_ * views_ * patch_stride_));
      d_out = d_patches_.d_data() + (staged.images + view) * patch_stride_;
    }
    launch.push_back({d_tiles_.d_data() + staged.begin + view * stride, d_out, patch.spec.key,
                      ColoursOf(plan.images()[patch.spec.image], staged.lookup.get()),
                      plan.FactsOf(patch.spec.image)});
  }
  return absl::OkStatus();
}

Status GpuLane::QueueLabels(const FetchedPatch& patch, std::size_t index) {
  const std::vector<ArrayLayout>& arrays = patch.work->context().layout().arrays;
  std::size_t at = index * label_stride_;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!IsMadeOfLabels(arrays[i])) continue;
    const auto h_part = h_labels_.bytes().subspan(at, arrays[i].PatchBytes());
    at += h_part.size();
    std::byte* const d_out = DevicePlaceOf(patch, i);
    if (d_out == nullptr) continue;
    PB_RETURN_IF_ERROR(memory::CopyToDevice(d_out, h_part, stream_.get()));
  }
  return absl::OkStatus();
}

Status GpuLane::QueueToHost(const Staged& staged) {
  const FetchedPatch& patch = *staged.patch;
  if (patch.spec.pad) return absl::OkStatus();
  for (std::size_t view = 0; view < views_; ++view) {
    if (DevicePlaceOf(patch, kImageArray + view) != nullptr) continue;
    const std::byte* d_patch = d_patches_.d_data() + (staged.images + view) * patch_stride_;
    PB_RETURN_IF_ERROR(
        memory::CopyToHost(HostPlaceOf(patch, kImageArray + view), d_patch, stream_.get()));
  }
  return absl::OkStatus();
}

Status GpuLane::Launch(const ops::DeviceChain& chain) {
  if (patches_.empty()) return absl::OkStatus();
  PB_RETURN_IF_ERROR(begun_.Record(stream_.get()));
  if (tile_bytes_ != 0) {
    PB_RETURN_IF_ERROR(memory::CopyToDevice(d_tiles_.d_data(), h_tiles_.bytes().first(tile_bytes_),
                                            stream_.get()));
  }
  std::vector<ops::DevicePatch> launch;
  for (std::size_t i = 0; i < patches_.size(); ++i) {
    const FetchedPatch& patch = *patches_[i].patch;
    if (!patch.work->Wanted()) continue;
    PB_RETURN_IF_ERROR(AddImages(patches_[i], launch));
    if (label_stride_ != 0) PB_RETURN_IF_ERROR(QueueLabels(patch, i));
  }
  PB_RETURN_IF_ERROR(chain.Begin(arena_, capacity_ * views_));
  PB_RETURN_IF_ERROR(chain.Launch(launch, arena_, stream_.get()));
  for (const Staged& staged : patches_) {
    if (!staged.patch->work->Wanted()) continue;
    PB_RETURN_IF_ERROR(QueueToHost(staged));
  }
  return made_.Record(stream_.get());
}

Status GpuLane::WaitSync() const { return made_.WaitSync(); }

Status GpuLane::WaitForAllSync() const { return stream_.WaitSync(); }

void GpuLane::Free() {
  PB_CHECK(patches_.empty());
  h_tiles_ = memory::PinnedBuffer();
  h_labels_ = memory::PinnedBuffer();
  d_tiles_ = memory::DeviceBlock();
  d_patches_ = memory::DeviceBlock();
  arena_ = ops::DeviceArena();
}

std::vector<std::unique_ptr<FetchedPatch>> GpuLane::Take() {
  std::vector<std::unique_ptr<FetchedPatch>> patches;
  for (Staged& staged : patches_) patches.push_back(std::move(staged.patch));
  patches_.clear();
  return patches;
}

}  // namespace patchbay::workers

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/chain/device_chain.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "workers/stream/label_arrays.h"
#include "workers/stream/patch_arrays.h"
#include "workers/stream/patch_maker.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kLanes = 4;      ///< patches one thread has on the GPU at once
constexpr std::size_t kChainsMax = 4;  ///< streams whose tables stay on the GPU

/// The memory of one patch on its way over the GPU.
struct Lane {
  memory::PinnedBuffer h_tile, h_labels;
  memory::DeviceBlock d_tile, d_patch;
  ops::DeviceRoom room;
  memory::GpuEvent made;
  std::unique_ptr<FetchedPatch> patch;  ///< begun and not yet retired
};

class GpuPatchMaker final : public PatchMaker {
 public:
  explicit GpuPatchMaker(PatchEnded ended) : ended_(std::move(ended)) {}
  ~GpuPatchMaker() override { Flush(); }

  Status Open(const std::string& gpu_uuid) {
    PB_ASSIGN_OR_RETURN(const int index, memory::GpuIndexOf(gpu_uuid));
    PB_RETURN_IF_ERROR(memory::SelectGpu(index));
    PB_ASSIGN_OR_RETURN(stream_, memory::OwnedGpuStream::Create());
    for (Lane& lane : lanes_) {
      PB_ASSIGN_OR_RETURN(lane.made, memory::GpuEvent::Create());
    }
    return absl::OkStatus();
  }

  void Make(std::unique_ptr<FetchedPatch> patch) override {
    Lane& lane = lanes_[next_];
    next_ = (next_ + 1) % kLanes;
    Retire(lane);
    const Status begun = patch->job->Wanted() ? Begin(lane, *patch) : absl::OkStatus();
    if (begun.ok() && patch->job->Wanted()) {
      lane.patch = std::move(patch);
    } else {
      // Whatever was queued before the failure may still read the lane.
      const Status idle = stream_.WaitSync();
      ended_(std::move(patch), begun.ok() ? idle : begun);
    }
  }

  void Flush() override {
    for (std::size_t i = 0; i < kLanes; ++i) Retire(lanes_[(next_ + i) % kLanes]);
  }

 private:
  void Retire(Lane& lane) {
    if (lane.patch == nullptr) return;
    const Status status = lane.made.WaitSync();
    ended_(std::move(lane.patch), status);
  }

  Status Begin(Lane& lane, const FetchedPatch& patch) {
    const StreamContext& context = patch.job->context();
    WriteMetaArrays(patch);
    PB_RETURN_IF_ERROR(BeginLabels(lane, patch));
    for (std::size_t view = 0; view < context.plan().views(); ++view) {
      if (patch.spec.pad) {
        PB_RETURN_IF_ERROR(Clear(patch, kImageArray + view));
      } else {
        PB_RETURN_IF_ERROR(BeginImage(lane, patch, view));
      }
      if (!patch.job->Wanted()) return absl::OkStatus();
    }
    return lane.made.Record(stream_.get());
  }

  /// Masks and labels are made on the CPU; to arrays on the device they are copied.
  Status BeginLabels(Lane& lane, const FetchedPatch& patch) {
    const StreamContext& context = patch.job->context();
    if (!context.plan().config().labels.HasArrays()) return absl::OkStatus();
    PB_RETURN_IF_ERROR(WriteLabelArrays(patch, decoder_, labels_));
    const std::vector<ArrayLayout>& arrays = context.layout().arrays;
    if (lane.h_labels.bytes().size() < context.layout().PatchBytes()) {
      PB_ASSIGN_OR_RETURN(lane.h_labels,
                          memory::PinnedBuffer::Allocate(context.layout().PatchBytes()));
    }
    std::size_t used = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const auto bytes = labels_.BytesOf(arrays[i]);
      std::byte* d_out = DevicePlaceOf(patch, i);
      if (!bytes || d_out == nullptr) continue;
      const std::span<std::byte> h_part = lane.h_labels.bytes().subspan(used, bytes->size());
      std::memcpy(h_part.data(), bytes->data(), bytes->size());
      PB_RETURN_IF_ERROR(memory::CopyToDevice(d_out, h_part, stream_.get()));
      used += bytes->size();
    }
    return absl::OkStatus();
  }

  Status Clear(const FetchedPatch& patch, std::size_t array) {
    const std::uint64_t patch_bytes = patch.job->context().chain().patch_bytes();
    std::byte* const d_out = DevicePlaceOf(patch, array);
    if (d_out != nullptr) return memory::FillDevice(d_out, 0, patch_bytes, stream_.get());
    std::memset(HostPlaceOf(patch, array).data(), 0, patch_bytes);
    return absl::OkStatus();
  }

  /// One of the patch's images, through its own part of the lane, into the array of its number.
  Status BeginImage(Lane& lane, const FetchedPatch& patch, std::size_t view) {
    const StreamContext& context = patch.job->context();
    const std::size_t tile_bytes = TileDecoder::TileBytes(context);
    const std::size_t tile_stride = RoundUp(tile_bytes);
    const std::size_t patch_stride = RoundUp(context.chain().patch_bytes());
    const std::size_t views = context.plan().views();
    if (view == 0) PB_RETURN_IF_ERROR(Fit(lane, tile_stride * views, patch_stride * views));
    const std::span<std::byte> h_tile = lane.h_tile.bytes().subspan(view * tile_stride, tile_bytes);
    PB_RETURN_IF_ERROR(decoder_.Decode(patch, view, h_tile));
    if (!patch.job->Wanted()) return absl::OkStatus();
    std::byte* const d_tile = lane.d_tile.d_data() + view * tile_stride;
    PB_RETURN_IF_ERROR(memory::CopyToDevice(d_tile, h_tile, stream_.get()));
    PB_ASSIGN_OR_RETURN(const ops::DeviceChain* chain, ChainOf(context));
    std::byte* d_out = DevicePlaceOf(patch, kImageArray + view);
    const bool to_host = d_out == nullptr;
    if (to_host) d_out = lane.d_patch.d_data() + view * patch_stride;
    const auto& fit = context.plan().images()[patch.spec.image].macenko;
    const ops::DevicePatch launch{d_tile, d_out, patch.spec.key, fit ? &*fit : nullptr};
    if (view == 0) PB_RETURN_IF_ERROR(chain->Begin(lane.room, views));
    PB_RETURN_IF_ERROR(chain->Launch({&launch, 1}, lane.room, stream_.get()));
    if (!to_host) return absl::OkStatus();
    return memory::CopyToHost(HostPlaceOf(patch, kImageArray + view), d_out, stream_.get());
  }

  /// Parts of a lane are aligned as whole blocks are.
  static std::size_t RoundUp(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

  static Status Fit(Lane& lane, std::size_t tile_bytes, std::uint64_t patch_bytes) {
    if (lane.h_tile.bytes().size() < tile_bytes) {
      PB_ASSIGN_OR_RETURN(lane.h_tile, memory::PinnedBuffer::Allocate(tile_bytes));
      PB_ASSIGN_OR_RETURN(lane.d_tile, memory::DeviceBlock::Allocate(tile_bytes));
    }
    if (lane.d_patch.size_bytes() < patch_bytes) {
      PB_ASSIGN_OR_RETURN(lane.d_patch, memory::DeviceBlock::Allocate(patch_bytes));
    }
    return absl::OkStatus();
  }

  /// The tables of the stream's plan on this GPU; equal plans share them.
  StatusOr<const ops::DeviceChain*> ChainOf(const StreamContext& context) {
    for (const auto& [digest, chain] : chains_) {
      if (digest == context.plan().digest()) return &chain;
    }
    PB_ASSIGN_OR_RETURN(ops::DeviceChain chain,
                        ops::DeviceChain::Create(context.chain(), stream_.get()));
    if (chains_.size() >= kChainsMax) {
      Flush();
      PB_RETURN_IF_ERROR(stream_.WaitSync());
      chains_.erase(chains_.begin());
    }
    chains_.emplace_back(context.plan().digest(), std::move(chain));
    return &chains_.back().second;
  }

  const PatchEnded ended_;
  memory::OwnedGpuStream stream_;
  TileDecoder decoder_;
  LabelArrays labels_;
  std::vector<std::pair<Digest, ops::DeviceChain>> chains_;
  std::array<Lane, kLanes> lanes_;
  std::size_t next_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<PatchMaker>> MakeGpuPatchMaker(const std::string& gpu_uuid,
                                                        PatchEnded ended) {
  auto maker = std::make_unique<GpuPatchMaker>(std::move(ended));
  PB_RETURN_IF_ERROR(maker->Open(gpu_uuid));
  return std::unique_ptr<PatchMaker>(std::move(maker));
}

}  // namespace patchbay::workers

#include <cstring>
#include <utility>
#include <vector>

#include "workers/stream/chain_options.h"
#include "workers/stream/function_batch.h"
#include "workers/stream/making_timer.h"
#include "workers/stream/patch_arrays.h"
#include "workers/stream/patch_maker.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {
namespace {

class CpuPatchMaker final : public PatchMaker {
 public:
  CpuPatchMaker(PatchEnded ended, FunctionPolicy policy)
      : ended_(std::move(ended)),
        policy_(std::move(policy)),
        functions_(policy_, decoder_, ended_) {}

  void Make(std::span<std::unique_ptr<FetchedPatch>> patches) override {
    for (auto& patch : patches) {
      const bool has_functions = !patch->work->context().functions().functions().empty();
      if (has_functions && !patch->spec.pad && patch->work->Wanted()) {
        functions_.Add(std::move(patch));
        continue;
      }
      const MakingTimer timer(decoder_, patch->work->spent);
      const Status status = patch->work->Wanted() ? MakeNow(*patch) : absl::OkStatus();
      timer.Stop();
      ended_(std::move(patch), status);
    }
  }

  std::size_t patches_at_once() const override { return 1; }

  void Flush() override { functions_.Flush(); }

 private:
  Status MakeNow(const FetchedPatch& patch) {
    WriteMetaArrays(patch);
    PB_RETURN_IF_ERROR(WriteLabelArrays(patch, decoder_, labels_));
    const StreamContext& context = patch.work->context();
    for (std::size_t view = 0; view < context.plan().views(); ++view) {
      PB_RETURN_IF_ERROR(MakeImage(patch, view));
    }
    return absl::OkStatus();
  }

  /// One of the patch's images, into the array of its number.
  Status MakeImage(const FetchedPatch& patch, std::size_t view) {
    const std::span<std::byte> out = HostPlaceOf(patch, kImageArray + view);
    if (patch.spec.pad) {
      std::memset(out.data(), 0, out.size());
      return absl::OkStatus();
    }
    StreamContext& context = patch.work->context();
    tile_.resize(TileDecoder::TileBytes(context, patch.spec));
    PB_RETURN_IF_ERROR(decoder_.Decode(patch, view, tile_));
    if (!patch.work->Wanted()) return absl::OkStatus();
    const ops::Chain& chain = context.chain();
    const TensorView source = TileDecoder::TileView(context, patch.spec, tile_);
    PB_ASSIGN_OR_RETURN(const auto icc, context.ToSrgb(patch.spec.image));
    const auto& image = context.plan().images()[patch.spec.image];
    const plan::VolumeFacts facts = context.plan().FactsOf(patch.spec.image);
    return chain.Run(source, patch.spec.key, out, chain_scratch_, ColoursOf(image, icc.get()),
                     &facts);
  }

  const PatchEnded ended_;
  const FunctionPolicy policy_;
  TileDecoder decoder_;
  FunctionBatch functions_;
  LabelArrays labels_;
  std::vector<std::byte> tile_;
  std::vector<std::byte> chain_scratch_;
};

}  // namespace

std::unique_ptr<PatchMaker> MakeCpuPatchMaker(PatchEnded ended, FunctionPolicy functions) {
  return std::make_unique<CpuPatchMaker>(std::move(ended), std::move(functions));
}

}  // namespace patchbay::workers

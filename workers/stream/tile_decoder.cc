#include "workers/stream/tile_decoder.h"

#include <algorithm>

#include "runtime/plan/class_table.h"

namespace patchbay::workers {

Status TileDecoder::Decode(const FetchedPatch& patch, std::span<std::byte> tile) {
  const StreamContext& context = patch.job->context();
  const Status decoded = patch.image->Decode(patch.encoded, TileView(context, tile),
                                             context.plan().fill(), ScratchFor(patch.image));
  return Annotate(decoded, StrCat("image ", patch.spec.image));
}

Status TileDecoder::DecodeLabels(const FetchedPatch& patch, const TensorView& window) {
  const Status decoded = patch.labels->Decode(patch.encoded_labels, window, plan::kIgnoreClass,
                                              ScratchFor(patch.labels));
  return Annotate(decoded, StrCat("image ", patch.spec.image));
}

std::size_t TileDecoder::TileBytes(const StreamContext& context) {
  const ops::Chain& chain = context.chain();
  return static_cast<std::size_t>(chain.source_extent().Pixels() * chain.options().channels) *
         SizeOf(chain.options().source_dtype);
}

TensorView TileDecoder::TileView(const StreamContext& context, std::span<std::byte> tile) {
  PB_CHECK(tile.size() == TileBytes(context));
  const ops::Chain& chain = context.chain();
  const Extent size = chain.source_extent();
  return ContiguousView<4>(
      tile.data(), chain.options().source_dtype,
      {size.z, size.y, size.x, static_cast<std::int64_t>(chain.options().channels)});
}

DecodeScratch& TileDecoder::ScratchFor(const std::shared_ptr<const ImageSource>& image) {
  const auto it = std::find_if(scratches_.begin(), scratches_.end(),
                               [&](const Entry& entry) { return entry.first == image; });
  if (it != scratches_.end()) {
    std::rotate(it, it + 1, scratches_.end());
  } else {
    if (scratches_.size() >= kScratchesMax) scratches_.erase(scratches_.begin());
    scratches_.emplace_back(image, image->MakeScratch());
  }
  return *scratches_.back().second;
}

}  // namespace patchbay::workers

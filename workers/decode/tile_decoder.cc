#include "workers/decode/tile_decoder.h"

#include <algorithm>
#include <array>

namespace patchbay::workers {

Status TileDecoder::Decode(const FetchedPatch& patch, std::span<std::byte> tile) {
  const StreamContext& context = patch.job->context();
  const ops::Chain& chain = context.chain();
  PB_CHECK(tile.size() == TileBytes(context));
  const TensorView out =
      ContiguousView(tile.data(), chain.options().source_dtype,
                     std::array<std::int64_t, 3>{chain.source_height(), chain.source_width(),
                                                 chain.options().channels});
  const Status decoded = patch.image->Decode(patch.encoded, out, context.plan().config().fill,
                                             ScratchFor(patch.image));
  return Annotate(decoded, StrCat("image ", patch.spec.image));
}

std::size_t TileDecoder::TileBytes(const StreamContext& context) {
  const ops::Chain& chain = context.chain();
  return static_cast<std::size_t>(chain.source_height() * chain.source_width() *
                                  chain.options().channels) *
         SizeOf(chain.options().source_dtype);
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

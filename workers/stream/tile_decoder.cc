#include "workers/stream/tile_decoder.h"

#include <algorithm>

#include "runtime/core/clock.h"
#include "runtime/model/plan/class_table.h"
#include "workers/sources/channel_choice.h"

namespace patchbay::workers {

Status TileDecoder::Decode(const FetchedPatch& patch, std::size_t view, std::span<std::byte> tile) {
  const std::int64_t begun_ns = SteadyNowNs();
  const Status decoded =
      DecodeImage(patch, patch.views[view], TileView(patch.work->context(), patch.spec, tile));
  spent_ns_ += SteadyNowNs() - begun_ns;
  return About(decoded, "", {SubjectKind::kImage, patch.spec.image, ""});
}

Status TileDecoder::DecodeImage(const FetchedPatch& patch, const FetchedView& view,
                                const TensorView& tile) {
  if (!view.window.IsPlain()) return DecodeResampled(patch, view, tile);
  return DecodePixels(patch, view, tile);
}

Status TileDecoder::DecodePixels(const FetchedPatch& patch, const FetchedView& view,
                                 const TensorView& out) {
  return DecodeChosen(*patch.image, view.encoded, out, patch.work->context().plan().fill(),
                      ScratchFor(patch.image), all_);
}

Status TileDecoder::DecodeLabels(const FetchedPatch& patch, std::size_t set,
                                 const TensorView& window) {
  const FetchedLabels& fetched = patch.labels[set];
  const ViewWindow& read = patch.views.front().window;
  TensorView labels = window;
  if (!read.IsPlain()) {
    finer_.resize(static_cast<std::size_t>(read.box.height * read.box.width));
    labels = ContiguousView<3>(finer_.data(), DType::kUint8, {read.box.height, read.box.width, 1});
  }
  const std::int64_t begun_ns = SteadyNowNs();
  const Status decoded = fetched.source->Decode(fetched.encoded, labels, plan::kIgnoreClass,
                                                ScratchFor(fetched.source));
  spent_ns_ += SteadyNowNs() - begun_ns;
  if (decoded.ok() && !read.IsPlain()) {
    return ops::TakeNearest(labels, read.y, read.x, SliceOf(window, 0));
  }
  return About(decoded, "", {SubjectKind::kImage, patch.spec.image, ""});
}

Status TileDecoder::DecodeResampled(const FetchedPatch& patch, const FetchedView& view,
                                    const TensorView& tile) {
  const Box& box = view.window.box;
  const std::int64_t channels = tile.shape[3];
  finer_.resize(static_cast<std::size_t>(box.height * box.width * channels) * SizeOf(tile.dtype));
  const TensorView finer =
      ContiguousView<3>(finer_.data(), tile.dtype, {box.height, box.width, channels});
  PB_RETURN_IF_ERROR(DecodePixels(patch, view, finer));
  return average_.Run(finer, view.window.y, view.window.x, SliceOf(tile, 0));
}

Extent TileDecoder::TileExtent(const StreamContext& context, const plan::PatchSpec& spec) {
  return context.chain().SourceExtent(spec.key, context.plan().FactsOf(spec.image));
}

std::size_t TileDecoder::TileBytes(const StreamContext& context, const plan::PatchSpec& spec) {
  const ops::Chain& chain = context.chain();
  return static_cast<std::size_t>(TileExtent(context, spec).Pixels() * chain.options().channels) *
         SizeOf(chain.options().source_dtype);
}

TensorView TileDecoder::TileView(const StreamContext& context, const plan::PatchSpec& spec,
                                 std::span<std::byte> tile) {
  const ops::Chain& chain = context.chain();
  const Extent size = TileExtent(context, spec);
  PB_CHECK(tile.size() == TileBytes(context, spec));
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

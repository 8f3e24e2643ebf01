// The decode stage of one thread: encoded pieces to the pixels of one patch.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ops/geometry/area_average.h"
#include "workers/stream/patch_reader.h"

namespace patchbay::workers {

/// Keeps the scratch of the images this thread decoded last. One thread.
class TileDecoder {
 public:
  /// Decodes the source box of one view of the patch into `tile`, contiguous (depth, height, width,
  /// channels) of exactly that size, resampled where the plan requires it. DataLoss names image,
  /// level, row and column.
  Status Decode(const FetchedPatch& patch, std::size_t view, std::span<std::byte> tile);

  /// The labels of the patch's source box, by label set `set` of the patch, into `window`, (depth,
  /// height, width, 1) of uint8; ignored outside the image.
  Status DecodeLabels(const FetchedPatch& patch, std::size_t set, const TensorView& window);

  /// Wall time this decoder has spent decoding, ever.
  std::int64_t spent_ns() const { return spent_ns_; }

  /// Size of the pixels decoded for a patch: that of its source box.
  static Extent TileExtent(const StreamContext& context, const plan::PatchSpec& spec);
  static std::size_t TileBytes(const StreamContext& context, const plan::PatchSpec& spec);
  /// The same for any patch of a stream that is not of volumes.
  static std::size_t TileBytes(const StreamContext& context) { return TileBytes(context, {}); }
  /// `tile`, of TileBytes, as the tensor it is.
  static TensorView TileView(const StreamContext& context, const plan::PatchSpec& spec,
                             std::span<std::byte> tile);

 private:
  static constexpr std::size_t kScratchesMax = 16;  ///< larger: more memory, less set-up work

  using Entry = std::pair<std::shared_ptr<const ImageSource>, std::unique_ptr<DecodeScratch>>;
  DecodeScratch& ScratchFor(const std::shared_ptr<const ImageSource>& image);

  Status DecodePixels(const FetchedPatch& patch, const FetchedView& view, const TensorView& out);
  Status DecodeImage(const FetchedPatch& patch, const FetchedView& view, const TensorView& tile);
  Status DecodeResampled(const FetchedPatch& patch, const FetchedView& view,
                         const TensorView& tile);

  std::int64_t spent_ns_ = 0;
  std::vector<std::byte> finer_;  ///< pixels that are averaged
  std::vector<std::byte> all_;    ///< pixels of all channels, where some of them are wanted
  ops::AreaAverage average_;
  std::vector<Entry> scratches_;  ///< the most recently used last
};

}  // namespace patchbay::workers

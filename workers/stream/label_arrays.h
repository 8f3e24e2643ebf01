// The arrays `mask` and `label` of a patch, from the label image of its slide or volume and the
// geometry of its image; `label` also from its row of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "workers/stream/patch_reader.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {

/// The class of a patch by labels.label.rule, of its mask; kIgnoreClass for none.
std::int64_t LabelOfMask(const plan::RunConfig& config, const plan::LabelClasses& classes,
                         const std::vector<std::uint8_t>& mask);

/// Makes them on the CPU. One thread.
class LabelArrays {
 public:
  /// Decodes the patch's labels where they are wanted, runs the geometry and keeps the result until
  /// the next call. For padding all is ignored. DataLoss names the image.
  Status Make(const FetchedPatch& patch, TileDecoder& decoder);

  /// The bytes for an array of the layout; nullopt for one that is neither mask nor label. Valid
  /// until the next Make.
  std::optional<std::span<const std::byte>> BytesOf(const ArrayLayout& array) const;

 private:
  std::vector<std::byte> window_, scratch_;
  std::vector<std::uint8_t> mask_;
  std::int64_t label_ = 0;
};

/// Where the stream has either array: Make, and both into the shard's host window where that is
/// where they go.
Status WriteLabelArrays(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels);

}  // namespace patchbay::workers

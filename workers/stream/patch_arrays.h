// A patch's place in the arrays of its shard; the contents of the small ones, of masks and labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "workers/stream/patch_reader.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {

/// The first array that the chain writes; the arrays of contexts follow it.
inline constexpr std::size_t kImageArray = 0;

/// The bytes of the patch in its shard's host window.
std::span<std::byte> HostPlaceOf(const FetchedPatch& patch, std::size_t array);
/// The array's address on the device, or null where the array goes to host memory.
std::byte* DevicePlaceOf(const FetchedPatch& patch, std::size_t array);

/// Writes the arrays that describe the origin of the patch; they lie in host memory. For padding,
/// ordinal, image_index and level are -1 and box is 0. For a wrapped tail, the ordinal is that of
/// the repeated patch. last_of_image is 1 for an image's last patch of the epoch, 0 otherwise.
void WriteMetaArrays(const FetchedPatch& patch);

// The arrays `mask`, `mask_1`, ... and `label` of a patch, from the label images of its slide or
// volume and the geometry of its image; `label` also from its row of the table.

/// The class of a patch, computed from its mask by labels.label.rule; kIgnoreClass for none.
std::int64_t LabelOfMask(const plan::RunConfig& config, const plan::LabelClasses& classes,
                         const std::vector<std::uint8_t>& mask);

/// Makes masks and `label` of patches on the CPU. For one thread.
class LabelArrays {
 public:
  /// Decodes the patch's labels if any are wanted, applies the geometry and keeps the result until
  /// the next call. A padding patch is all kIgnoreClass. DataLoss names the image.
  Status Make(const FetchedPatch& patch, TileDecoder& decoder);

  /// The same of a mask that was made by Make, and may have changed since; for a patch with labels.
  void Take(const FetchedPatch& patch, std::span<const std::byte> mask);
  /// The first mask of the patch; empty where it has no labels.
  std::span<const std::uint8_t> mask() const { return masks_.front(); }

  /// The bytes for an array of the layout; nullopt for one that is neither mask nor label. Valid
  /// until the next Make.
  std::optional<std::span<const std::byte>> BytesOf(const ArrayLayout& array) const;

 private:
  Status MakeMask(const FetchedPatch& patch, std::size_t set, TileDecoder& decoder);

  std::vector<std::byte> window_, scratch_;
  std::vector<std::vector<std::uint8_t>> masks_ = {{}};  ///< one for each label set
  std::int64_t label_ = 0;
};

/// Whether LabelArrays makes the array.
bool IsMadeOfLabels(const ArrayLayout& array);

/// Writes them, where the stream has them, into the shard's host window where that is where they
/// go.
void WriteMadeLabels(const FetchedPatch& patch, const LabelArrays& labels);

/// Where the stream has any of these arrays: Make, and all into the shard's host window where that
/// is where they go.
Status WriteLabelArrays(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels);

}  // namespace patchbay::workers

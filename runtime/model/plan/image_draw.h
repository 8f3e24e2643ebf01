// Draws the image of a patch, and its class, by weight: constant time a patch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/draw/alias_table.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

/// The part of an image in a draw.
struct ImageShare {
  std::uint64_t pixels = 0;               ///< places for a patch's centre; 0 = never drawn
  std::span<const std::uint32_t> groups;  ///< PlannedImage::groups
};

/// Weights of images out of 2^40: every value of the first group is equally likely, within it every
/// value of the next, and within the last the images in proportion to their pixels. Rounded down.
std::vector<std::uint64_t> WeightsOf(std::span<const ImageShare> shares);

/// `weights` scaled to a sum of `total` with none above `most`; the excess goes to the others in
/// proportion. Rounded down. All 0 when the others cannot take it.
std::vector<std::uint64_t> ShareOut(std::span<const std::uint64_t> weights, std::uint64_t total,
                                    std::uint64_t most);

class ImageDraw {
 public:
  struct Pick {
    std::uint32_t image = 0;
    /// Index of the class among class_weights; for foreground 1 and on, or kAnywhere.
    std::size_t set = 0;
  };
  /// `shares[set][image]`; `patches` is the number per epoch. InvalidArgument, naming the key: a
  /// class with a weight that no image has; a max_per_slide too small for the epoch.
  static StatusOr<ImageDraw> Of(const RunConfig& config,
                                const std::vector<std::vector<ImageShare>>& shares,
                                std::uint64_t patches);
  /// `key` names the patch; its stream is set here.
  Pick Draw(DrawKey key) const;

 private:
  AliasTable sets_;
  /// Under nnU-Net's profile: patches in a batch, and how many of them, the first ones, need no
  /// foreground.
  std::uint64_t batch_ = 0, unforced_ = 0;
  AliasTable forced_;               ///< sets of the other patches of a batch
  std::vector<AliasTable> images_;  ///< images of each set; empty where the set has no weight
};

/// The error that no image has a patch with as much tissue as the config asks for.
Status NoTissue(const RunConfig& config, std::size_t images);

/// Whether a config draws images by weight.
bool DrawsImages(const RunConfig& config);

/// Blocks of DrawStream::kPosition: 0 and 1 are a place within the image.
inline constexpr std::uint32_t kImageBlock = 2, kPlaceBlock = 3;

/// 64 bits of a block, its first or second half.
inline std::uint64_t HalfOf(const PhiloxBlock& block, int half) {
  return (std::uint64_t{block.word[2 * half]} << 32) | block.word[2 * half + 1];
}

}  // namespace patchbay::plan

// The images of the patches of a sequential epoch, so that its shards can go where their image is
// open.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay {

/// The image of each patch of a sequential epoch, in few words: runs of images with equally
/// many patches.
class ImageRuns {
 public:
  struct Run {
    std::uint64_t patches_per_image = 0, images = 0;
    bool operator==(const Run&) const = default;
  };
  ImageRuns() = default;
  /// InvalidArgument when the runs are too many, have zeros, or do not sum up to `patches`.
  static StatusOr<ImageRuns> Of(std::span<const Run> runs, std::uint64_t patches);
  /// The runs of images with equal patch counts. If there are too many runs, groups of two, four,
  /// ... neighbours count as one.
  static ImageRuns OfCounts(std::vector<std::uint64_t> patches_of_image);

  /// nullopt when nothing is known, or past the last patch.
  std::optional<std::uint64_t> ImageOf(std::uint64_t ordinal) const;
  std::vector<Run> runs() const;
  bool empty() const { return starts_.empty(); }

 private:
  struct Start {
    std::uint64_t ordinal = 0, image = 0, patches_per_image = 0;
  };
  std::vector<Start> starts_;
  std::uint64_t patches_ = 0;
};

}  // namespace patchbay

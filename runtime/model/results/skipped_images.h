// The images that planning a stream left out or took with a reservation, as they travel from
// planning to the user.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/fields.h"

namespace patchbay::results {

struct SkippedImage {
  std::string path, reason;

  static constexpr auto Fields() {
    return AsFullObject(Field("path", &SkippedImage::path), Field("reason", &SkippedImage::reason));
  }
};

/// Images that on_bad_image: skip left out, and files that are no images. Each list is cut
/// behind its first images when they are very many.
struct SkippedImages {
  std::uint64_t count = 0;
  std::vector<SkippedImage> images;
  /// Images in the stream whose stains could not be fitted, and why.
  std::vector<SkippedImage> without_stain;
  /// Images in the stream that keep their colours under icc_to_srgb, and why.
  std::vector<SkippedImage> without_icc;
  /// Images in the stream whose um/px is that of the table's column `mpp`, with the file's.
  std::vector<SkippedImage> mpp_corrected;
  /// Images in the stream that are the part of a DICOM slide that the table chooses, with the part.
  std::vector<SkippedImage> parts_chosen;
  /// Kind -> files in the dataset's folders that are no images.
  std::map<std::string, std::int64_t> files;

  static constexpr auto Fields() {
    using T = SkippedImages;
    return AsObject(Field("count", &T::count).Required(), Field("images", &T::images).Required(),
                    Field("without_stain", &T::without_stain),
                    Field("without_icc", &T::without_icc),
                    Field("mpp_corrected", &T::mpp_corrected),
                    Field("parts_chosen", &T::parts_chosen), Field("skipped_files", &T::files));
  }
};

}  // namespace patchbay::results

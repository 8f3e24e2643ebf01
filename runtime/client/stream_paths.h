// Adds the paths of a stream's images to errors, which arrive without them. Only the user's own
// terminal may show paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::client {

/// The paths of a plan's images, from the plan, or of the dataset's, from the result of the job's
/// root task; empty when it has none to read.
std::vector<std::string> PlannedPaths(const std::string& result);

/// An image that was left out of a plan.
struct SkippedImage {
  std::string path, reason;
};

/// Images that on_bad_image: skip left out, and files that are no images.
struct Skipped {
  std::uint64_t count = 0;
  std::vector<SkippedImage> images;  ///< the first ones, when they are very many
  /// Images in the stream whose stains could not be fitted, and why.
  std::vector<SkippedImage> without_stain;
  /// Images in the stream that keep their colours under icc_to_srgb, and why.
  std::vector<SkippedImage> without_icc;
  /// Images in the stream whose um/px is that of the table's column `mpp`, with the file's.
  std::vector<SkippedImage> mpp_corrected;
  /// Kind -> files in the dataset's folders that are no images.
  Json files = Json::object();
};

/// The skipped images that the plan names.
Skipped SkippedImages(const Json& plan);

/// `status` with the paths of the entries of the dataset and of images. Where a plan could not be
/// made, its images have no paths yet; the advice then says how to find them.
Status NamePaths(const Status& status, const std::vector<std::string>& datasets,
                 const std::vector<std::string>& images);

}  // namespace patchbay::client

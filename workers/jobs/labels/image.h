// The store that annotations are imported into, as far as an import needs to know it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/core/extent.h"
#include "runtime/core/spacing.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"
#include "workers/sources/volumes/patient_axes.h"

namespace patchbay::workers {

struct LabelledImage {
  std::string store;           ///< canonical path
  std::vector<Extent> levels;  ///< finest first
  Spacing spacing;             ///< spacing of level 0
  /// The slide it was made from, in the pixels that annotations are drawn in; level 0 unless the
  /// ingest left finer levels out.
  Extent source;
  Box bounds;  ///< the scanned area of `source`, in its pixels; all of it unless the file states
               ///< one
  std::string pixel_digest;
  bool is_volume = false;
  /// A volume's geometry: the positions of its voxels, and keyed hashes of its frames of reference;
  /// empty if the store does not have them.
  Affine affine;
  std::vector<std::string> frames_of_reference;
  Json transform_log = Json::array();  ///< steps from its source's voxels to the store's
  std::string source_kind, source_sha256;

  double ScaleY() const { return static_cast<double>(levels[0].y) / static_cast<double>(source.y); }
  double ScaleX() const { return static_cast<double>(levels[0].x) / static_cast<double>(source.x); }
};

/// InvalidArgument for anything but a store of an ingest (the message says how to make one), and
/// for a volume whose store has no positions.
StatusOr<LabelledImage> OpenLabelledImage(const Folders& allowed, const std::string& store);

/// InvalidArgument for a volume; `doing` begins the message.
Status CheckFlat(const LabelledImage& image, std::string_view doing);

}  // namespace patchbay::workers

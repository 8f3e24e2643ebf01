// The directories of a TIFF that hold the channels of an image, one or several, level by level.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// The levels of an image whose channels may lie in directories of their own.
struct TiffChannels {
  /// Finest first; of each level a directory for every plane.
  std::vector<std::vector<TiffDirectory>> levels;
  std::vector<std::string> names;  ///< a name for each channel; empty for colours and plain grey
};

/// The image that begins with the first directory: by OME-XML, the planes that it names and the
/// images in their SubIFDs; else the first directory, and the reduced images of its proportions, in
/// the chain or in its SubIFDs. Unimplemented for several full-size images of which no OME-XML says
/// that they are channels.
StatusOr<TiffChannels> FindTiffChannels(const TiffIndex& index, std::string_view description);

/// InvalidArgument, with the field, where planes of one level are not stored alike.
Status CheckAlike(const std::vector<TiffDirectory>& planes);

/// Whether `reduced` has the proportions of `full`, each side rounded either way, and is smaller.
bool IsReducedFrom(const TiffDirectory& full, const TiffDirectory& reduced);

}  // namespace patchbay::workers

// The fields of an OME-TIFF's OME-XML, by allow-list: everything else in it may name a patient.
#pragma once

#include <optional>
#include <string_view>

namespace patchbay::workers {

struct OmeDescription {
  /// PhysicalSizeX and PhysicalSizeY of the first image, micrometres per pixel; absent when not
  /// stated, stated in a unit that is not a length (`pixel`, `reference frame`), or outside what a
  /// microscope's pixels measure (`mpp_limits.h`).
  std::optional<double> mpp_y, mpp_x;
};

/// True for the description of the first directory of an OME-TIFF.
bool IsOmeDescription(std::string_view description);

/// Reads the attributes of the first `Pixels` element. What is malformed is absent.
OmeDescription ParseOmeDescription(std::string_view description);

}  // namespace patchbay::workers

// The fields of an Aperio description and of an OME-TIFF's OME-XML, by allow-list: everything else
// in them may name a patient.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace patchbay::workers {

struct OmeDescription {
  /// PhysicalSizeX and PhysicalSizeY of the first image, micrometres per pixel; absent when not
  /// stated, stated in a unit that is not a length (`pixel`, `reference frame`), or outside the
  /// range of a microscope's pixels (`source_extent.h`).
  std::optional<double> mpp_y, mpp_x;
};

/// True for the description of the first directory of an OME-TIFF.
bool IsOmeDescription(std::string_view description);

/// Reads the attributes of the first `Pixels` element. Malformed attributes are absent.
OmeDescription ParseOmeDescription(std::string_view description);

struct AperioDescription {
  std::optional<double> mpp;              ///< micrometres per pixel, as stated; never derived
  std::optional<double> objective_power;  ///< AppMag
  std::string scanner_type, date, time;   ///< as stated; "" where they are not
};

/// True for the description of the first directory of an Aperio slide, variants of other scanners
/// that write the same layout included.
bool IsAperioDescription(std::string_view description);

/// Reads `key = value` fields separated by '|'. Keys and values are trimmed; a decimal comma is
/// read as a point; the last of repeated keys counts; values that are not positive numbers are
/// absent.
AperioDescription ParseAperioDescription(std::string_view description);

}  // namespace patchbay::workers

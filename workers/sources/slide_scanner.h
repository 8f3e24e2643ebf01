// The device that scanned a slide, and when: of all that a file says about it these fields alone.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// Texts as the file states them: printable, at most kMaxScannerBytes; "" where it states none.
struct SlideScanner {
  std::string manufacturer, model;
  std::string scanned_at;  ///< date, and time where there is one: may lead to a patient
};
inline constexpr std::size_t kMaxScannerBytes = 64;

/// Reads tags 271, 272 and 306 of a TIFF, ScannerType, Date and Time of an Aperio description, and
/// Manufacturer, ManufacturerModelName and AcquisitionDateTime of DICOM. Serial numbers and names
/// of stations are never read. All empty for other files; the error of one that cannot be opened.
StatusOr<SlideScanner> ScannerOf(const Folders& allowed, const std::string& path);

}  // namespace patchbay::workers

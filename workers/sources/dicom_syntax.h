// Transfer syntaxes of DICOM slides.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// The compression of a transfer syntax, by its UID. Unimplemented, with its name, for one that is
/// not read.
StatusOr<TiffCompression> CompressionOf(const std::string& uid);

/// Whether it is JPEG-LS without loss.
bool IsLosslessJpegLs(const std::string& uid);

}  // namespace patchbay::workers

// Whether the Huffman codes of a JPEG image come out even.
#pragma once

#include "runtime/core/status.h"
#include "workers/sources/volumes/jpeg_markers.h"

namespace patchbay::workers {

/// Reads the codes of a baseline, extended or lossless image of one component and one scan, without
/// decoding it, and holds them to what no decoder looks at: every code is in its table, every block
/// has 64 coefficients with a DC value that samples can have, and codes, restart markers and
/// padding end where the image ends, to the bit. DataLoss where they do not. Other processes are
/// not looked into.
Status CheckJpegCodes(const JpegMarkers& image);

}  // namespace patchbay::workers

// DCMTK made ready, once a process. Included only by the files of this folder that include DCMTK.
#pragma once

#include <string>

#include "runtime/base/status.h"

class DcmItem;

namespace patchbay::workers {

/// Registers the decoders (JPEG, JPEG-LS, RLE), silences the log (it may quote patients), and adds
/// the tags that are read to the dictionary where DCMTK's own is not installed.
void StartDicomLibrary();

/// Text of an element without the padding of its ends; "" where it is absent. Values of several
/// parts keep their backslashes. At most 1024 characters.
std::string DicomText(DcmItem& item, unsigned group, unsigned element);

}  // namespace patchbay::workers

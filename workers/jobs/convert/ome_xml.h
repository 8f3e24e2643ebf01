// OME-XML (schema 2016-06) of a store that is converted.
#pragma once

#include <string>
#include <string_view>

#include "workers/jobs/convert/conversion.h"

namespace patchbay::workers {

/// `creator` is its attribute of that name. `planar`: channels apart and pixels elsewhere, as
/// beside a Zarr; otherwise interleaved pixels in the first directory of a TIFF.
std::string OmeXmlOf(const Conversion& from, std::string_view creator, bool planar);

}  // namespace patchbay::workers

// An ICC profile, as a slide carries it, becomes a lookup to sRGB. The only place that reads
// profiles: what is kept of one is the lookup, and none of its texts.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "ops/icc_to_srgb/icc_lookup.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// Scanners' profiles have up to 13 MB.
inline constexpr std::size_t kMaxIccProfileBytes = std::size_t{16} << 20;

/// The lookup of an ImageSource: null without a profile.
using SharedLookup = std::shared_ptr<const ops::IccLookup>;

/// Relative colorimetric, without black point compensation, to sRGB (IEC 61966-2-1).
/// InvalidArgument for bytes that are no profile, a profile of other colours than RGB, and one that
/// leads nowhere; no text of the profile is in the message.
StatusOr<ops::IccLookup> LookupOfIccProfile(std::string_view profile);

/// That of the profile that a TIFF directory points to. InvalidArgument as above, and when it lies
/// past the end of the file or is too large.
StatusOr<SharedLookup> LookupOfTiff(const zarr::StoredBytes& file, const TiffDirectory& directory);

}  // namespace patchbay::workers

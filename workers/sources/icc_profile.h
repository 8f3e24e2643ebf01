// Turns a slide's ICC profile into a lookup to sRGB, and a lookup into a profile. The only place
// that reads profiles: only the lookup is kept, and none of the profile's texts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ops/icc_to_srgb/icc_lookup.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// Profiles of scanners have up to 13 MB.
inline constexpr std::size_t kMaxIccProfileBytes = std::size_t{16} << 20;

/// The lookup of an ImageSource: null without a profile.
using SharedLookup = std::shared_ptr<const ops::IccLookup>;

/// The lookup from the profile's colours to sRGB (IEC 61966-2-1): relative colorimetric, without
/// black point compensation. InvalidArgument for bytes that are no profile, for a profile of other
/// colours than RGB and for one without a usable transformation; messages hold no text of the
/// profile.
StatusOr<ops::IccLookup> LookupOfIccProfile(std::string_view profile);

/// A profile of the same colours, version 4, for files that are made of stores: what
/// LookupOfIccProfile makes of it differs by less than a grey level, but for colours far outside
/// sRGB, which Lab does not hold. The same lookup gives the same bytes.
StatusOr<std::string> IccProfileOf(const ops::IccLookup& lookup);

/// The lookup of the profile that a TIFF directory points to. InvalidArgument as above, and for a
/// profile that lies past the end of the file or is too large.
StatusOr<SharedLookup> LookupOfTiff(const zarr::StoredBytes& file, const TiffDirectory& directory);

}  // namespace patchbay::workers

// The rules under which a DICOM series that is refused as it is may be ingested all the same. None
// acts without the user's consent.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay {

enum class Repair {
  kFrameOfReference,  ///< several frames of reference are taken for one
  kKernel,            ///< so are several reconstruction kernels
  kCopies,            ///< slices at the place of another, with its pixels, are left out
  kLocalizer,         ///< so are localisers, screen captures and dose reports among other slices
  kSplit,             ///< a series of several phases becomes several volumes
  kRescale,           ///< CT whose values are no Hounsfield units is in arbitrary units
  kSecondaryCapture,  ///< secondary captures, which may show names, are taken
  kMonochrome1,       ///< stored values are inverted; of CT in arbitrary units then
  kBurnedIn,          ///< the header says, or leaves open, that pixels show annotation
  kChannelGrid,       ///< a channel lies elsewhere than the first one of its image
};

using Repairs = std::set<Repair>;

/// "frame-of-reference", "kernel", ...
std::string_view NameOf(Repair rule);
/// "copies,split"; "" is none. InvalidArgument lists the rules.
StatusOr<Repairs> ParseRepairs(std::string_view text);
/// The rules that the `transform_log` of a store records.
Repairs RepairsIn(const Json& transform_log);

}  // namespace patchbay

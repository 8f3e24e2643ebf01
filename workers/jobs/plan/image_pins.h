// What a lock says of each image of a run, as it comes with the job's manifest.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// Digests in hex, one an image; "" = the lock has none.
struct ImagePins {
  std::vector<std::string> images;
  std::map<std::string, std::vector<std::string>> sets;
};

/// manifest["table"]["pins"], {"images": [...], "sets": {name: [...]}}; nothing without it.
/// InvalidArgument unless it has `count` images.
StatusOr<std::optional<ImagePins>> PinsOf(const Json& manifest, std::size_t count);

/// FailedPrecondition unless the image has the digest it is pinned to.
Status CheckPinned(const ImagePins& pins, std::size_t image, const Digest& digest);
/// The revision of a label set that the image is pinned to; FailedPrecondition without one.
StatusOr<Digest> PinnedSet(const ImagePins& pins, std::size_t image, const std::string& set);

}  // namespace patchbay::workers

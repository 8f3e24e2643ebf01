// The ICC profile of an image, as a plan knows it: the digest of its lookup, or why it has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::plan {

/// The attribute of a store that has the lookup.
inline constexpr std::string_view kIccToSrgb = "icc_to_srgb";

/// Why an image keeps its colours.
enum class IccFallback : std::uint8_t {
  kNone,       ///< no fallback: the image has a lookup
  kNoProfile,  ///< the image carries no profile
  kUnusable,   ///< its profile is damaged, or not of RGB
};
/// "none", "no_profile", "unusable_profile".
std::string_view NameOf(IccFallback fallback);
std::optional<IccFallback> IccFallbackFromName(std::string_view name);

/// Facts of one image for icc_to_srgb.
struct ImageIcc {
  Digest lookup;  ///< SHA-256 of its values; all zero under a fallback
  IccFallback fallback = IccFallback::kNone;

  bool operator==(const ImageIcc&) const = default;
};
/// 64 hex digits, or the fallback's name.
Json ToJson(const ImageIcc& icc);
StatusOr<ImageIcc> ImageIccFromJson(const Json& value);

}  // namespace patchbay::plan

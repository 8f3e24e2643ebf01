// icc_to_srgb: the colours of every image as sRGB, by the ICC profile of its scanner. The profile
// is read once, at ingest (of a slide that is streamed as it is, when it is opened), and becomes a
// lookup; a plan names the lookup by its digest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

inline constexpr std::string_view kIccToSrgb = "icc_to_srgb";

/// Why an image keeps its colours.
enum class IccFallback : std::uint8_t {
  kNone,       ///< it does not: it has a lookup
  kNoProfile,  ///< it carries no profile
  kUnusable,   ///< its profile is damaged, or not of RGB
};
/// "none", "no_profile", "unusable_profile".
std::string_view NameOf(IccFallback fallback);
std::optional<IccFallback> IccFallbackFromName(std::string_view name);

struct IccToSrgbOptions {
  /// Whether an image without a usable profile is an error of the run; otherwise it keeps its
  /// colours, and planning names it.
  bool refuses_missing = false;

  static config::Key Keys();
  /// From a value that passed Keys().
  static IccToSrgbOptions FromJson(const Json& options);
};

/// Facts of one image for icc_to_srgb.
struct ImageIcc {
  Digest lookup;  ///< SHA-256 of its values; all zero under a fallback
  IccFallback fallback = IccFallback::kNone;

  bool operator==(const ImageIcc&) const = default;
};
/// 64 hex digits, or the fallback's name.
Json ToJson(const ImageIcc& icc);
StatusOr<ImageIcc> ImageIccFromJson(const Json& value);

/// The options of the run's icc_to_srgb: the first in either list ([{op: {...}}], checked).
std::optional<IccToSrgbOptions> FindIccToSrgb(const Json& preprocess, const Json& augment);

}  // namespace patchbay::plan

// The one sentence that refuses everything of another version: a peer, a file, a store.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/strings.h"

namespace patchbay {

/// Advice about peers, and about files that a later release wrote.
inline constexpr std::string_view kRunOneRelease =
    "run the same release of Patchbay on every node and in every program";
inline constexpr std::string_view kTakeItsRelease =
    "use the release of Patchbay that wrote it, or a later one";

/// "version 5, this program knows 1 to 4; <advice>": a number or a text, the known ones likewise.
template <typename Found, typename Known>
std::string OtherVersion(const Found& found, const Known& known, std::string_view advice) {
  return StrCat("version ", found, ", this program knows ", known, "; ", advice);
}

}  // namespace patchbay

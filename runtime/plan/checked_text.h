// Small binary files of a label set: a mark, what they hold, and a checksum at the end.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/base/strings.h"

namespace patchbay::plan {

inline constexpr std::size_t kCheckBytes = 16;

inline std::string CheckOf(std::string_view text) {
  return Sha256Of(text).Hex().substr(0, kCheckBytes);
}

inline std::string WithCheck(std::string text) { return text + CheckOf(text); }

/// What lies between the mark and the checksum. `what` begins the messages ("read position index").
inline StatusOr<std::string_view> CheckedBody(std::string_view text, std::string_view mark,
                                              std::size_t most_bytes, std::string_view what) {
  if (!text.starts_with(mark) || text.size() < mark.size() + kCheckBytes ||
      text.size() > most_bytes) {
    return absl::InvalidArgumentError(StrCat(what, ": not an index of this version"));
  }
  const std::string_view check = text.substr(text.size() - kCheckBytes);
  text.remove_suffix(kCheckBytes);
  if (CheckOf(text) != check) {
    return absl::DataLossError(StrCat(what, ": its checksum differs"));
  }
  return text.substr(mark.size());
}

}  // namespace patchbay::plan

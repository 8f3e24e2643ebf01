// Functions that build text. Debian's Abseil is built for C++14, so its string_view is not
// std::string_view: StrCat here takes both, and MessageOf gives a status's text as the standard
// type.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace patchbay {
namespace strings_internal {

inline void Append(std::string& out, std::string_view piece) { out.append(piece); }
inline void Append(std::string& out, const std::string& piece) { out.append(piece); }
inline void Append(std::string& out, const char* piece) { out.append(piece); }
inline void Append(std::string& out, absl::string_view piece) {
  out.append(piece.data(), piece.size());
}
inline void Append(std::string& out, char piece) { out.push_back(piece); }
inline void Append(std::string& out, bool piece) { out.append(piece ? "true" : "false"); }
template <std::integral T>
void Append(std::string& out, T piece) {
  out.append(std::to_string(piece));
}
/// Shortest text that reads back as the same value.
void Append(std::string& out, double piece);

}  // namespace strings_internal

/// The pieces one after another; numbers in decimal, doubles in their shortest form.
template <typename... Pieces>
[[nodiscard]] std::string StrCat(const Pieces&... pieces) {
  std::string out;
  (strings_internal::Append(out, pieces), ...);
  return out;
}

/// The message of a status as a std::string_view; valid as long as the status is.
inline std::string_view MessageOf(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

/// "INVALID_ARGUMENT: text", for logs and terminals.
std::string Describe(const absl::Status& status);

/// 16 lower-case hex digits.
std::string Hex64(std::uint64_t value);

std::string StrJoin(const std::vector<std::string>& pieces, std::string_view separator);

/// The candidate closest to `word` by edit distance, or "" when none is within a third of its
/// length (at least 2).
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "1.5 GiB", "312 B".
std::string HumanBytes(std::uint64_t bytes);

}  // namespace patchbay

// Small binary files of a label set: a mark, the content, and a checksum at the end.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {

inline constexpr std::size_t kCheckBytes = 16;

inline std::string CheckOf(std::string_view text) {
  return Sha256Of(text).Hex().substr(0, kCheckBytes);
}

inline std::string WithCheck(std::string text) { return text + CheckOf(text); }

/// A text is whole by its checksum, which is compared, or by its digest, which the caller has
/// compared.
enum class VouchedBy { kChecksum, kDigest };

/// The text between the mark and the checksum. `what` begins the messages ("read position index").
inline StatusOr<std::string_view> CheckedBody(std::string_view text, std::string_view mark,
                                              std::size_t most_bytes, std::string_view what,
                                              VouchedBy vouched = VouchedBy::kChecksum) {
  if (!text.starts_with(mark) || text.size() < mark.size() + kCheckBytes ||
      text.size() > most_bytes) {
    return InvalidArgument(what, ": not an index of this version");
  }
  const std::string_view check = text.substr(text.size() - kCheckBytes);
  text.remove_suffix(kCheckBytes);
  if (vouched == VouchedBy::kChecksum && CheckOf(text) != check) {
    return DataLoss(what, ": its checksum differs");
  }
  return text.substr(mark.size());
}

/// Parses the rest of `text`: the number of classes, at most `most`, then each class by `take`,
/// which removes it from the front and returns a StatusOr of Class. Their values must rise.
/// Messages as in CheckedBody.
template <typename Class, typename Take>
StatusOr<std::vector<Class>> TakeClasses(std::string_view text, std::uint64_t most,
                                         std::string_view what, const Take& take) {
  std::vector<Class> classes;
  std::uint64_t count = 0;
  if (!TakeVarint(text, most, count)) return InvalidArgument(what, ": too many classes");
  for (std::uint64_t i = 0; i < count; ++i) {
    PB_ASSIGN_OR_RETURN(Class one, take(text));
    if (!classes.empty() && classes.back().value >= one.value) {
      return InvalidArgument(what, ": classes that are not in the order of their values");
    }
    classes.push_back(std::move(one));
  }
  if (text.empty()) return classes;
  return InvalidArgument(what, ": more than its classes");
}

}  // namespace patchbay::plan

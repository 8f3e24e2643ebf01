// The pseudonym of a failure's subject, for readers who do not know its name: an operator who looks
// at another user's job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/outcome.h"

namespace patchbay {

inline constexpr std::size_t kPseudonymDigits = 16;

/// How many of `others` the texts name.
inline std::size_t NamedOthers(const Outcome& outcome) {
  std::int64_t named = 0;
  for (const std::string* text : {&outcome.doing, &outcome.cause, &outcome.advice}) {
    named += std::count(text->begin(), text->end(), kOtherSubject);
  }
  return static_cast<std::size_t>(named);
}

inline bool IsPseudonym(std::string_view text) {
  return text.size() == kPseudonymDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// `others` gets one more than the texts name, which no line shows. An outcome keeps the one it
/// has; one whose texts name more than `others` holds gets none.
inline void AddPseudonym(Outcome& outcome, std::string pseudonym) {
  if (outcome.others.size() != NamedOthers(outcome) || !IsPseudonym(pseudonym)) return;
  outcome.others.push_back({SubjectKind::kNone, 0, std::move(pseudonym)});
}

/// "" when there is none. Never text of another form, whatever a peer sent.
inline std::string PseudonymIn(const Outcome& outcome) {
  if (outcome.others.size() != NamedOthers(outcome) + 1) return "";
  const Subject& last = outcome.others.back();
  return last.kind == SubjectKind::kNone && IsPseudonym(last.part) ? last.part : "";
}

}  // namespace patchbay

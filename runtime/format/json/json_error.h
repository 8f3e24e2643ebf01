// Errors for text that is not JSON, in our words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"

namespace patchbay {

/// Whether brackets are nested deeper than kMaxJsonDepth: a hostile document is refused before it
/// is built. Reads nesting alone, of any text.
bool TooDeep(std::string_view text);

/// "not JSON (line 3, column 5)": the parser's error in `text`. Columns count bytes, from 1.
inline std::string JsonFaultOf(std::string_view text, const Json::exception& error) {
  constexpr std::string_view kBlank = " \t\r\n";
  if (text.find_first_not_of(kBlank) == std::string_view::npos) return "not JSON: it is empty";
  const auto* parse = dynamic_cast<const Json::parse_error*>(&error);
  if (parse == nullptr) return "a number out of the range of a double";
  const bool ended = parse->byte > text.size();
  const std::size_t at = std::min(parse->byte, text.size() + 1);  // from 1
  const std::string_view before = text.substr(0, at == 0 ? 0 : at - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n');
  const std::size_t column = before.size() - (begin == std::string_view::npos ? 0 : begin + 1) + 1;
  return StrCat("not JSON", ended ? ": it ends too early" : "", " (line ", line, ", column ",
                column, ")");
}

}  // namespace patchbay

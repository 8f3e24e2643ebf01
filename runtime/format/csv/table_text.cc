#include "runtime/format/csv/table_text.h"

#include <algorithm>
#include <array>
#include <string>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// Spaces around cells: those of ASCII, no-break, narrow no-break, ideographic, and two without a
/// width.
constexpr std::array<std::string_view, 11> kSpaces = {
    " ",        "\t",           "\r",           "\n",           "\v",          "\f",
    "\xC2\xA0", "\xE2\x80\xAF", "\xE3\x80\x80", "\xE2\x80\x8B", "\xEF\xBB\xBF"};
constexpr std::string_view kSeparators = ",;\t";  ///< the first wins where counts are equal

/// The place of the first byte that is not UTF-8, or npos.
std::size_t NotUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

Status CheckEncoding(std::string_view text, std::string_view source) {
  constexpr std::string_view kCure = "; save it as CSV UTF-8";
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return WrongLine(source, 1, StrCat("the text is UTF-16", kCure));
  }
  const std::size_t at = std::min(NotUtf8(text), text.find('\0'));
  if (at == std::string_view::npos) return absl::OkStatus();
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
  return WrongLine(source, static_cast<int>(line), StrCat("the text is not UTF-8", kCure));
}

/// The separator: Excel's hint ("sep=;" as the first line), else the most frequent candidate in the
/// first line.
char SeparatorOf(std::string_view& text, int& lines_before) {
  const std::string_view first = text.substr(0, text.find('\n'));
  if (first.size() >= 5 && first.starts_with("sep=")) {
    const char separator = first[4];
    text.remove_prefix(std::min(text.size(), first.size() + 1));
    lines_before = 1;
    return separator;
  }
  const auto count = [&](char c) { return std::count(first.begin(), first.end(), c); };
  return *std::max_element(kSeparators.begin(), kSeparators.end(),
                           [&](char a, char b) { return count(a) < count(b); });
}

}  // namespace

Status WrongLine(std::string_view source, int line, std::string_view cause) {
  return InvalidArgument(source, ":", line, ": ", cause);
}

std::string_view TrimmedCell(std::string_view cell) {
  const auto trim = [&cell](std::string_view space) {
    const std::size_t size = cell.size();
    if (cell.starts_with(space)) cell.remove_prefix(space.size());
    if (cell.ends_with(space)) cell.remove_suffix(space.size());
    return cell.size() < size;
  };
  while (!cell.empty() && std::any_of(kSpaces.begin(), kSpaces.end(), trim)) continue;
  return cell;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

StatusOr<TableText> OpenTableText(std::string_view text, std::string_view source) {
  PB_RETURN_IF_ERROR(CheckEncoding(text, source));
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  TableText opened;
  opened.separator = SeparatorOf(text, opened.lines_before);
  opened.text = text;
  return opened;
}

}  // namespace patchbay

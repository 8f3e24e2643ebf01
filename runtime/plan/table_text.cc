#include "runtime/plan/table_text.h"

#include <algorithm>
#include <string>

#include "runtime/base/strings.h"

namespace patchbay::plan {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
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

/// Excel's own hint ("sep=;" as the first line), else what the first line has most of.
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
  return absl::InvalidArgumentError(StrCat(source, ":", line, ": ", cause));
}

std::string_view TrimmedCell(std::string_view cell) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = cell.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return cell.substr(first, cell.find_last_not_of(kSpace) - first + 1);
}

StatusOr<TableText> OpenTableText(std::string_view text, std::string_view source) {
  PB_RETURN_IF_ERROR(CheckEncoding(text, source));
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  TableText opened;
  opened.separator = SeparatorOf(text, opened.lines_before);
  opened.text = text;
  return opened;
}

}  // namespace patchbay::plan

// A key table as a YAML file that has every key with its default.
#include "runtime/core/strings.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/format/yaml/key_text.h"

namespace patchbay::config {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kColumns = 100;

/// Comment lines of at most kColumns, broken between words.
void AppendComment(const std::string& text, const std::string& margin, std::string& out) {
  std::string line;
  const auto end_line = [&] { out += StrCat(margin, "#", line, "\n"); };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!line.empty() && margin.size() + line.size() + word.size() + 2 > kColumns) {
      end_line();
      line.clear();
    }
    line += StrCat(" ", word);
    at = space + 1;
  }
  end_line();
}

std::string CommentOf(const Key& key) {
  std::string limits = key.unit;
  const std::string range = RangeText(key);
  if (!range.empty()) limits += StrCat(limits.empty() ? "" : ", ", range);
  if (!key.choices.empty()) limits = StrJoin(key.choices, ", ");
  return StrCat(key.required ? "required: " : "", key.help,
                limits.empty() ? "" : StrCat(" (", limits, ")"));
}

/// `mark` is "# " for keys that are absent by default.
void AppendKeys(const Key& table, const std::string& margin, const std::string& mark,
                std::string& out) {
  for (const Key& key : table.members) {
    AppendComment(CommentOf(key), margin, out);
    const bool is_map = key.type == KeyType::kMap;
    const bool is_absent = is_map ? key.optional : key.fallback.is_null() && !key.required;
    const std::string own = mark.empty() && is_absent ? "# " : mark;
    const std::string value = is_map || key.fallback.is_null() ? "" : " " + DumpJson(key.fallback);
    out += StrCat(margin, own, key.name, ":", value, "\n");
    if (is_map) AppendKeys(key, margin + std::string(kIndent, ' '), own, out);
  }
}

}  // namespace

std::string YamlOfKeys(const Key& table) {
  std::string out;
  AppendKeys(table, "", "", out);
  return out;
}

}  // namespace patchbay::config

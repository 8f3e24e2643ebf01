#include "runtime/cli/manifest_csv.h"

#include <algorithm>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxManifestBytes = 256u << 20;

/// The fields of the row that starts at `at`, which is moved past it.
std::vector<std::string> NextRow(const std::string& text, std::size_t& at) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      const bool doubled = quoted && at + 1 < text.size() && text[at + 1] == '"';
      if (doubled) fields.back().push_back(text[++at]);
      if (!doubled) quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c == '\n' && !quoted) {
      ++at;
      break;
    } else if (c != '\r' || quoted) {
      fields.back().push_back(c);
    }
  }
  return fields;
}

}  // namespace

std::map<std::string, std::string> ReadManifestCsv(const std::string& folder,
                                                   const std::string& key,
                                                   const std::string& value) {
  std::map<std::string, std::string> found;
  const auto text = ReadFile(StrCat(folder, "/manifest.csv"), kMaxManifestBytes);
  if (!text.ok()) return found;
  std::size_t at = 0;
  const std::vector<std::string> heading = NextRow(*text, at);
  const auto place = [&](const std::string& column) {
    return static_cast<std::size_t>(std::find(heading.begin(), heading.end(), column) -
                                    heading.begin());
  };
  const std::size_t from = place(key), to = place(value);
  if (std::max(from, to) >= heading.size()) return found;
  while (at < text->size()) {
    const std::vector<std::string> fields = NextRow(*text, at);
    if (fields.size() > std::max(from, to)) found[fields[from]] = fields[to];
  }
  return found;
}

}  // namespace patchbay::cli

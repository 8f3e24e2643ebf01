#include "runtime/cli/store_sources.h"

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

std::map<std::string, std::string> ReadStoreSources(const std::string& folder) {
  std::map<std::string, std::string> sources;
  const auto text = ReadFile(StrCat(folder, "/manifest.csv"), kMaxManifestBytes);
  if (!text.ok()) return sources;
  std::size_t at = 0;
  NextRow(*text, at);  // the header
  while (at < text->size()) {
    const std::vector<std::string> fields = NextRow(*text, at);
    if (fields.size() >= 2) sources[fields[0]] = fields[1];
  }
  return sources;
}

}  // namespace patchbay::cli

#include "runtime/cli/stream_paths.h"

#include <charconv>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

/// Replaces every "`word` N" by paths[N]; true when there was one that has no path.
bool Replace(std::string& text, std::string_view word, const std::vector<std::string>& paths) {
  const std::string mark = StrCat(word, " ");
  bool unknown = false;
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
    const char* digits = text.data() + at + mark.size();
    std::size_t index = 0;
    const auto number = std::from_chars(digits, text.data() + text.size(), index);
    const bool is_word = at == 0 || text[at - 1] == ' ';
    if (number.ec != std::errc() || !is_word || index >= paths.size()) {
      unknown = unknown || (number.ec == std::errc() && is_word);
      at += mark.size();
      continue;
    }
    const auto length = static_cast<std::size_t>(number.ptr - text.data()) - at;
    text.replace(at, length, paths[index]);
    at += paths[index].size();
  }
  return unknown;
}

}  // namespace

std::vector<std::string> PlannedPaths(const std::string& result) {
  const StatusOr<Json> plan = ParseJson(result, "stream plan");
  if (!plan.ok() || !plan->is_object() || !plan->contains("manifest")) return {};
  const Json& manifest = (*plan)["manifest"];
  const StatusOr<std::string> root = JsonString(manifest, "root", "stream plan");
  if (!root.ok() || !manifest.contains("images") || !manifest["images"].is_array()) return {};
  std::vector<std::string> paths;
  for (const Json& path : manifest["images"]) {
    paths.push_back(path.is_string() ? *root + path.get<std::string>() : "an image");
  }
  return paths;
}

Status NamePaths(const Status& status, const std::vector<std::string>& datasets,
                 const std::vector<std::string>& images) {
  if (status.ok()) return status;
  std::string text(MessageOf(status));
  Replace(text, "dataset", datasets);
  if (Replace(text, "image", images) && images.empty()) {
    text += " (`patchbay config check` of this run config names the image)";
  }
  return Status(status.code(), text);
}

}  // namespace patchbay::cli

#include "runtime/client/paths.h"

#include <charconv>
#include <filesystem>

#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

namespace fs = std::filesystem;

}  // namespace

StatusOr<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return FromErrno("find path", path, error.value());
  std::string text = absolute.string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool IsStore(const std::string& path) {
  std::error_code error;
  for (const char* name : {"zarr.json", ".zgroup", ".zarray", ".zattrs"}) {
    if (fs::is_regular_file(fs::path(path) / name, error)) return true;
  }
  return false;
}

bool NameNumbered(std::string& text, std::string_view word, const std::vector<std::string>& paths) {
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

}  // namespace patchbay::client

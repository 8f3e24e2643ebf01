#include "workers/access/path_names.h"

#include <algorithm>
#include <string_view>

#include "runtime/base/strings.h"
#include "workers/access/path_rights.h"

namespace patchbay::workers {
namespace {

/// Where the rest of a path that begins before `at` ends: messages are "doing: subject: cause".
std::size_t EndOfSubject(const std::string& text, std::size_t at) {
  return std::min(text.find(": ", at), text.size());
}

void AddList(const Json& manifest, const char* key, std::string_view name, PathNames& names) {
  const auto list = manifest.find(key);
  if (list == manifest.end() || !list->is_array()) return;
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (!(*list)[i].is_string()) continue;
    names.AddFolder((*list)[i].get<std::string>(), StrCat(name, " ", i));
  }
}

}  // namespace

void PathNames::Add(std::string path, const std::string& name, bool hides_rest) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.size() > 1 && path.front() == '/') rows_.push_back({std::move(path), name, hides_rest});
}

void PathNames::AddImage(const std::string& path, const std::string& name) {
  Add(path, name, false);
}

void PathNames::AddFolder(const std::string& path, const std::string& name) {
  Add(path, name, true);
  const auto canonical = CanonicalPath(path);
  if (canonical.ok()) Add(*canonical, name, true);
}

void PathNames::AddManifest(const Json& manifest) {
  if (!manifest.is_object()) return;
  AddList(manifest, "images", "dataset", *this);
  AddList(manifest, "sources", "source", *this);
  const auto out = manifest.find("out");
  if (out == manifest.end() || !out->is_string()) return;
  Add(out->get<std::string>(), "OUT", false);
  const auto canonical = CanonicalPath(out->get<std::string>());
  if (canonical.ok()) Add(*canonical, "OUT", false);
}

std::string PathNames::Hide(std::string text) const {
  std::vector<const Row*> longest_first;
  for (const Row& row : rows_) longest_first.push_back(&row);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [](const Row* a, const Row* b) { return a->path.size() > b->path.size(); });
  for (const Row* row : longest_first) {
    for (std::size_t at = text.find(row->path); at != std::string::npos;
         at = text.find(row->path, at)) {
      std::size_t end = at + row->path.size();
      std::string name = row->name;
      if (row->hides_rest && end < text.size() && text[end] == '/') {
        end = EndOfSubject(text, end);
        name += "/...";
      }
      text.replace(at, end - at, name);
      at += name.size();
    }
  }
  return text;
}

Status PathNames::Hide(const Status& status) const {
  if (status.ok()) return status;
  return Status(status.code(), Hide(std::string(MessageOf(status))));
}

}  // namespace patchbay::workers

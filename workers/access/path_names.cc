#include "workers/access/path_names.h"

#include <algorithm>
#include <string_view>

#include "runtime/core/strings.h"
#include "workers/access/path_rights.h"

namespace patchbay::workers {
namespace {

/// Where the rest of a path that begins before `at` ends: messages are "doing: subject: cause".
std::size_t EndOfSubject(const std::string& text, std::size_t at) {
  return std::min(text.find(": ", at), text.size());
}

/// The parts of a path, without empty ones.
std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

bool IsStoreName(std::string_view part) {
  constexpr std::string_view kEnd = ".zarr";
  return part.size() >= kEnd.size() && part.substr(part.size() - kEnd.size()) == kEnd;
}

/// A name inside a store that the format gives, or that we do.
bool IsFixed(std::string_view part) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return part == "zarr.json" || part == "c" || part == "labels" ||
         std::all_of(part.begin(), part.end(), is_digit);
}

/// The replacement of `rest`, a path below `path` that begins with '/': "/...", and of what lies
/// inside a store the names that are fixed: "/.../0/zarr.json". Label sets have their names from
/// people.
std::string RestShown(std::string_view path, std::string_view rest) {
  constexpr std::string_view kHidden = "/...";
  bool in_store = IsStoreName(path.substr(path.rfind('/') + 1)), in_labels = false;
  std::string shown(in_store ? "" : kHidden);
  bool hid = !in_store;  // last
  for (const std::string_view part : PartsOf(rest)) {
    if (!in_store) {
      in_store = IsStoreName(part);
      continue;
    }
    const std::size_t chunk = std::min(part.find(" chunk ("), part.size());  // not of the path
    const std::string_view name = part.substr(0, chunk);
    const bool shows = IsFixed(name) && (!in_labels || name == "zarr.json");
    if (shows) shown += StrCat("/", part);
    if (!shows && !hid) shown += kHidden;
    hid = !shows;
    in_labels = name == "labels";
  }
  return shown;
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
        const std::size_t rest = end;
        end = EndOfSubject(text, end);
        name += RestShown(row->path, std::string_view(text).substr(rest, end - rest));
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

#include "runtime/model/source/tile_list.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>

#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/table_text.h"
#include "runtime/os/folder_listing.h"

namespace patchbay {
namespace {

/// Kinds of files that lie beside pictures and are no images.
constexpr std::array<std::string_view, 12> kDocuments = {
    "csv", "doc", "docx", "html", "ini", "json", "pdf", "tsv", "txt", "xls", "xlsx", "yaml"};

bool NamesPicture(const std::string& name) {
  const std::string extension = ExtensionOf(name);
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool HasControls(const std::string& path) {
  return std::any_of(path.begin(), path.end(),
                     [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; });
}

bool IsHidden(const std::string& name) { return name.starts_with('.'); }

/// One dataset while it is listed.
class Lister {
 public:
  Lister(const Folders& allowed, std::string folder, OtherImages others,
         const std::function<Status()>& after_entry)
      : allowed_(allowed), folder_(std::move(folder)), others_(others), after_entry_(after_entry) {}

  StatusOr<TileList> List() {
    PB_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(allowed_, folder_));
    for (const std::string& name : names) {
      if (IsHidden(name)) continue;
      const Status added = Add(name);
      if (is_none_) return TileList{};
      PB_RETURN_IF_ERROR(added);
    }
    if (list_.files.empty()) return TileList{};
    if (classes_.size() > kMaxTileClasses) {
      Refuse(folder_, StrCat(classes_.size(), " classes, more than ", kMaxTileClasses));
    }
    return std::move(list_);
  }

 private:
  /// The first fault stays.
  void Refuse(const std::string& path, std::string_view cause) {
    list_.fault.Update(ErrorAbout(absl::StatusCode::kInvalidArgument, "list tiles", path, cause));
  }

  Status Add(const std::string& name) {
    const std::string path = StrCat(folder_, "/", name);
    PB_ASSIGN_OR_RETURN(const struct stat st, StatOf(allowed_, path, false));
    if (S_ISDIR(st.st_mode)) return AddClass(name, path);
    if (!CheckLink(path, st)) return absl::OkStatus();
    if (NamesPicture(name)) {
      Refuse(path, "a picture beside the folders of classes: put it into one");
    } else {
      return Skip(path);
    }
    return absl::OkStatus();
  }

  Status AddClass(const std::string& name, const std::string& path) {
    const auto [other, is_new] = classes_.try_emplace(LowerCase(name), name);
    if (!is_new) {
      Refuse(path, StrCat("a class beside '", other->second,
                          "', from which its name differs in case alone"));
    }
    const std::size_t before = list_.files.size();
    PB_RETURN_IF_ERROR(WalkTree(allowed_, path, Links::kOfFiles,
                                [this](const FolderEntry& entry) { return Visit(entry); }));
    if (list_.files.size() == before) {
      Refuse(path, "no PNG or JPEG picture in the folder of this class");
    }
    std::sort(list_.files.begin() + static_cast<std::ptrdiff_t>(before), list_.files.end());
    return absl::OkStatus();
  }

  StatusOr<bool> Visit(const FolderEntry& entry) {
    if (after_entry_) PB_RETURN_IF_ERROR(after_entry_());
    if (IsHidden(NameOf(entry.path))) return false;
    if (entry.is_folder()) return true;
    if (!CheckLink(entry.path, entry.st)) return false;
    if (!entry.is_file() || !NamesPicture(entry.path)) {
      PB_RETURN_IF_ERROR(Skip(entry.path));
    } else if (HasControls(entry.path)) {
      Refuse(entry.path, "control characters in its name: tables of tiles have a line for each");
    } else if (list_.files.size() < kMaxTiles) {
      list_.files.push_back(entry.path.substr(folder_.size() + 1));
    } else {
      Refuse(folder_, StrCat("more than ", kMaxTiles, " tiles"));
    }
    return false;
  }

  /// Cancelled where it ends the list.
  Status Skip(const std::string& path) {
    const std::string kind = KindOfFile(path);
    ++list_.skipped[kind];
    is_none_ = others_ == OtherImages::kEndTheList &&
               std::find(kDocuments.begin(), kDocuments.end(), kind) == kDocuments.end();
    return is_none_ ? Cancelled("list tiles: '", path, "' may be an image") : absl::OkStatus();
  }

  /// False for a link to a folder: it may lead in a circle, or into another class.
  bool CheckLink(const std::string& path, const struct stat& st) {
    if (!S_ISLNK(st.st_mode) || !IsFolder(allowed_, path)) return true;
    Refuse(path, "a link to a folder: put the folder in its place");
    return false;
  }

  const Folders& allowed_;
  const std::string folder_;
  const OtherImages others_;
  const std::function<Status()>& after_entry_;
  std::map<std::string, std::string> classes_;  ///< names, by themselves in lower case
  TileList list_;
  bool is_none_ = false;  ///< no dataset of tiles
};

}  // namespace

std::string_view ClassOfTile(std::string_view file) { return file.substr(0, file.find('/')); }

StatusOr<TileList> ListTiles(const Folders& allowed, const std::string& folder, OtherImages others,
                             const std::function<Status()>& after_entry) {
  return Lister(allowed, folder, others, after_entry).List();
}

}  // namespace patchbay

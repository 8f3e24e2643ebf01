#include "runtime/format/zarr/store_tree.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>

#include "runtime/core/names.h"
#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

namespace fs = std::filesystem;

EntryKind KindOfMode(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kFolder;
  if (S_ISLNK(mode)) return EntryKind::kLink;
  if (S_ISFIFO(mode)) return EntryKind::kPipe;
  return EntryKind::kOther;
}

}  // namespace

std::string_view NameOf(EntryKind kind) {
  constexpr auto kNames = NamesInOrder<EntryKind>(
      "nothing", "a file", "a folder", "a symbolic link", "a pipe", "a device or socket");
  return kNames.Of(kind);
}

StatusOr<EntryKind> EntryKindOf(const std::string& path) {
  struct stat st {};
  if (lstat(path.c_str(), &st) == 0) return KindOfMode(st.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return EntryKind::kNothing;
  return FromErrno("stat", path, errno);
}

StrangeEntries FindStrangeEntries(const std::string& store, const KnownEntries& known,
                                  std::size_t max_listed) {
  StrangeEntries out;
  const auto list = [&](std::string fault) {
    ++out.count;
    out.faults.insert(std::move(fault));
    if (out.faults.size() > max_listed) out.faults.erase(std::prev(out.faults.end()));
  };
  std::error_code error;
  fs::path at = store;
  for (auto it = fs::recursive_directory_iterator(store, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    at = it->path();
    const std::string name = at.lexically_relative(store).string();
    const auto kind = EntryKindOf(at.string());
    const bool is_folder = kind.ok() && *kind == EntryKind::kFolder;
    if (is_folder && name == known.folder_elsewhere) it.disable_recursion_pending();
    if (!kind.ok() || is_folder || known.elsewhere.contains(name)) continue;
    const bool file = *kind == EntryKind::kFile;
    if (known.expected.contains(name)) {
      if (!file) list(StrCat(name, ": ", NameOf(*kind), ", not a file"));
    } else {
      list(StrCat(name, ": ", file ? "" : StrCat(NameOf(*kind), ", "), "not a file of this store"));
    }
  }
  if (error) {
    list(StrCat(at == store ? "." : at.lexically_relative(store).string(),
                ": not all of the store can be listed: ", error.message()));
  }
  return out;
}

}  // namespace patchbay::zarr

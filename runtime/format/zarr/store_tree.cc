#include "runtime/format/zarr/store_tree.h"

#include <sys/stat.h>

#include "runtime/core/names.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {
namespace {

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

StatusOr<EntryKind> EntryKindOf(const Folders& allowed, const std::string& path) {
  const auto st = StatOf(allowed, path, false);
  if (st.ok()) return KindOfMode(st->st_mode);
  return absl::IsNotFound(st.status()) ? StatusOr<EntryKind>(EntryKind::kNothing) : st.status();
}

StrangeEntries FindStrangeEntries(const Folders& allowed, const std::string& store,
                                  const KnownEntries& known, std::size_t max_listed) {
  StrangeEntries out;
  const auto list = [&](std::string fault) {
    ++out.count;
    out.faults.insert(std::move(fault));
    if (out.faults.size() > max_listed) out.faults.erase(std::prev(out.faults.end()));
  };
  const auto look = [&](const FolderEntry& entry) -> StatusOr<bool> {
    const std::string name = entry.path.substr(store.size() + 1);
    const EntryKind kind = KindOfMode(entry.st.st_mode);
    if (kind == EntryKind::kFolder) return name != known.folder_elsewhere;
    if (known.elsewhere.contains(name)) return false;
    const bool file = kind == EntryKind::kFile;
    if (known.expected.contains(name)) {
      if (!file) list(StrCat(name, ": ", NameOf(kind), ", not a file"));
    } else {
      list(StrCat(name, ": ", file ? "" : StrCat(NameOf(kind), ", "), "not a file of this store"));
    }
    return false;
  };
  const Status walked = WalkTree(allowed, store, Links::kKept, look);
  if (!walked.ok()) {
    const Outcome error = OutcomeOf(walked);
    const std::string& at = error.subject.part;
    list(StrCat(at.size() > store.size() ? at.substr(store.size() + 1) : ".",
                ": not all of the store can be listed: ", error.cause));
  }
  return out;
}

}  // namespace patchbay::zarr

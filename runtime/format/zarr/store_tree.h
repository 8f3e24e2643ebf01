// The entries of a store's folder, of any kind: nothing here follows a link or opens a file.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

enum class EntryKind : std::uint8_t { kNothing, kFile, kFolder, kLink, kPipe, kOther };

/// "a folder", "a symbolic link", "a pipe", ...
std::string_view NameOf(EntryKind kind);

/// The kind of the name itself, a link not followed. kNothing also where a folder of the path is
/// none.
StatusOr<EntryKind> EntryKindOf(const Folders& allowed, const std::string& path);

/// Entries below a store that are not its files.
struct StrangeEntries {
  std::set<std::string> faults;  ///< "0/c/0/0/9: not a file of this store", the first few by name
  std::uint64_t count = 0;       ///< all of them
};

/// Entries that are known to lie below a store.
struct KnownEntries {
  const std::set<std::string>& expected;   ///< files
  const std::set<std::string>& elsewhere;  ///< names that other checks cover
  std::string folder_elsewhere;            ///< a folder that other checks cover; may be empty
};

/// All entries below `store` except folders and known entries. A folder that cannot be listed is a
/// fault as well. At most `max_listed` are kept.
StrangeEntries FindStrangeEntries(const Folders& allowed, const std::string& store,
                                  const KnownEntries& known, std::size_t max_listed);

}  // namespace patchbay::zarr

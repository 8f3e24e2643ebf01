// A cheap check that an image is still the one that was planned.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/format/zarr/store_files.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// All files that are read for a slide: several of MIRAX, VMS and DICOM, which may be named by any
/// of its levels.
StatusOr<std::vector<std::string>> FilesOfSlide(const Folders& allowed, const std::string& path);

/// The byte root in a store's metadata; nullopt for stores of other writers and unreadable ones.
/// Reads one file.
std::optional<Digest> RecordedDigest(const Folders& allowed, const std::string& store);

/// The same from zarr::OwnAttributes, which reads a file and parses it.
std::optional<Digest> DigestIn(const Json& own_attributes);

/// A member of a store's attributes.patchbay; null where there is none.
Json RecordedAttribute(const Folders& allowed, const std::string& store, const char* name);

/// An image's files, as a look at them finds them.
struct SeenFiles {
  /// A text that is cheap to make and differs when the image's content does: sizes and mtimes of a
  /// slide's files, or of the metadata and all chunks of a store of another writer. They are equal
  /// on every node of a shared file system. Empty for a store that records its own digest and lists
  /// its shards: its digest is the stamp, and the list covers every shard. Content that is replaced
  /// with the same size and mtime is not noticed here, but by workers that have the file open.
  std::string stamp;
  std::shared_ptr<const zarr::StoreFiles> files;  ///< set where a stamp covers a store's chunks
  /// A store's root; nothing for a slide and where it cannot be read.
  std::optional<zarr::GroupMetadata> root;
};
/// `after_file` is called after each file that is examined, and its error ends the work.
StatusOr<SeenFiles> LookAtFiles(const Folders& allowed, const std::string& path,
                                const std::function<Status()>& after_file = {});
/// Their stamp alone.
StatusOr<std::string> StampOf(const Folders& allowed, const std::string& path,
                              const std::function<Status()>& after_file = {});

}  // namespace patchbay::workers

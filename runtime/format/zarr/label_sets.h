// The label sets of a store: named label images below it, each with all its revisions.
//
//   STORE/labels/zarr.json                  which revision of each set is current
//   STORE/labels/<set>.<16 hex digits>/     a revision: a label image of its own (NGFF), named by
//                                           the beginning of its digest, never changed
//   STORE/labels/.staging/                  what is not finished; of no reader's concern
//
// Nothing of this enters the digests of the store around it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

inline constexpr char kLabelsFolder[] = "labels";
inline constexpr char kLabelStagingFolder[] = ".staging";

/// Lower-case letters, digits, '_' and '-', at most 64; "gleason@reader1" is a reader's own set.
bool IsSetName(std::string_view name);
inline constexpr char kSetNameRule[] =
    "a name is lower-case letters, digits, _ and -, at most 64; gleason@reader1 is a reader's set";
/// "gleason.1f0c...": the folder of a revision below labels/.
std::string RevisionName(std::string_view set, const Digest& digest);

/// A set and its current revision.
struct LabelSet {
  std::string name;
  std::string revision;  ///< its folder's name below labels/
};

/// The current revisions, by name; empty for a store without labels. InvalidArgument for a list
/// that is malformed.
StatusOr<std::vector<LabelSet>> ReadLabelSets(const Folders& allowed, const std::string& store);

/// A revision that was opened by its metadata.
struct OpenedLabelSet {
  std::string path;    ///< path of the label image
  Digest digest;       ///< as recorded
  Json attributes;     ///< attributes.patchbay.labels: set, classes, image_pixel_digest, ...
  GroupMetadata root;  ///< the label image's, without them
};
/// The set's current revision. NotFound names the existing sets.
StatusOr<OpenedLabelSet> OpenLabelSet(const Folders& allowed, const std::string& store,
                                      std::string_view name);
/// The revision of that digest, current or not.
StatusOr<OpenedLabelSet> OpenLabelRevision(const Folders& allowed, const std::string& store,
                                           std::string_view name, const Digest& digest);
/// The revision one of whose further files has that digest, current or not. NotFound without one.
StatusOr<OpenedLabelSet> FindLabelRevision(const Folders& allowed, const std::string& store,
                                           std::string_view name, const std::string& file,
                                           const Digest& digest);

/// Makes a finished revision the set's current one, durably. The caller keeps others out.
Status MakeCurrent(const Folders& allowed, const std::string& store, const LabelSet& set);

/// Takes the set out of the list, durably; nothing where it is not in it. The caller keeps others
/// out, and removes the revisions.
Status MakeAbsent(const Folders& allowed, const std::string& store, std::string_view set);

/// Names below labels/: revisions, sorted, and names that are not Patchbay's.
struct LabelFolders {
  std::vector<std::string> revisions, strange;
};
StatusOr<LabelFolders> ListLabelFolders(const Folders& allowed, const std::string& store);

}  // namespace patchbay::zarr

// A dataset of tiles: pictures of one size in a folder for each class.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/source/file_kind.h"
#include "runtime/os/folders.h"

namespace patchbay {

inline constexpr std::size_t kMaxTiles = 1'000'000;
/// Class 255 of labels is ignored by losses.
inline constexpr std::size_t kMaxTileClasses = 255;

/// Pictures by class.
struct TileList {
  /// "ADI/a.png": below the dataset's folder, class by class, sorted by name. The first part is the
  /// class. Empty: the folder is no dataset of tiles.
  std::vector<std::string> files;
  FilesByKind skipped;  ///< other files, by their kind
  /// InvalidArgument about the first path for which the tiles cannot be taken.
  Status fault;
};

/// A file among the pictures that could be a slide or a volume, by its kind.
enum class OtherImages {
  kAreSkipped,  ///< is counted: the caller knows that it is none
  kEndTheList,  ///< shows that the folder is no dataset of tiles, and the rest of a large tree is
                ///< not walked
};

/// The class of a file of a TileList.
std::string_view ClassOfTile(std::string_view file);

/// The PNG and JPEG pictures, by the ends of their names, in the subfolders of `folder`, nested
/// ones too; names that begin with a dot are left out. No picture there, or pictures in `folder`
/// alone: an empty list. At fault are a class without a picture, pictures beside the folders of
/// classes, links to folders, classes whose names differ in case alone, and more than
/// kMaxTileClasses or kMaxTiles. `after_entry` is called for every entry; its error ends the work.
StatusOr<TileList> ListTiles(const Folders& allowed, const std::string& folder, OtherImages others,
                             const std::function<Status()>& after_entry = {});

}  // namespace patchbay
